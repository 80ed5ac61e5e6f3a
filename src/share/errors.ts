/** What ends a share consumer. Everything that passes by itself is retried inside and never becomes one of these. */
import { Schema } from "effect"

export class ShareError extends Schema.TaggedError<ShareError>()("ShareError", {
  /** unsupported: the brokers have no share groups. authorization: a right is missing. full: group.share.max.size. */
  reason: Schema.Literals(["unsupported", "authorization", "full", "refused", "internal"]),
  groupId: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return `share group ${this.groupId}: ${this.what}`
  }
}

export const NO_SHARE_GROUPS = "the source cluster has no share groups (share.version 0): use group.protocol: consumer"
