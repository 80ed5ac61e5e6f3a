/** The settings of the process: top level, `http` and `log`. */
import { SHUTDOWN_TIMEOUT_MS, shutdownSetting } from "./flowSettings.ts"
import { listen, optional, text, withDefault, word } from "./setting.ts"

/** What a configuration that names no address listens on, and where `onceover status` looks. */
export const DEFAULT_LISTEN = "127.0.0.1:8080"

export const topSettings = {
  "consumer.group.protocol": optional(
    word(
      ["share", "consumer"],
      "The group.protocol of every flow that does not say its own. The flow's group.protocol wins over it, and the flow's consumer.override.group.protocol over both."
    ),
    "share"
  ),
  "instance.id": optional(
    text(
      "letters, digits, dots, dashes and underscores, up to 100",
      /^[A-Za-z0-9._-]{1,100}$/,
      "Names this process among those that run the same flows: part of its transactional ids, so it must be its own and stay the same through restarts (a pod's name in a stateful set). Without it: the host's name and a number that no other process of the host holds."
    ),
    "the host's name and a free number"
  ),
  "shutdown.timeout.ms": withDefault(shutdownSetting, SHUTDOWN_TIMEOUT_MS)
}

export const httpSettings = {
  listen: withDefault(
    listen(
      "Where /health/live, /health/ready, /metrics, /status and the page for people are served. Loopback unless told otherwise: there is no login. Port 0 takes any free port and logs it."
    ),
    DEFAULT_LISTEN
  )
}

export const logSettings = {
  level: withDefault(
    word(["trace", "debug", "info", "warn", "error", "fatal"], "The least severe messages that are logged."),
    "info"
  ),
  format: withDefault(
    word(
      ["auto", "json", "pretty"],
      "`json` is one JSON object a line, `pretty` is for people, `auto` is pretty on a terminal and json elsewhere. Secrets are in neither."
    ),
    "auto"
  )
}
