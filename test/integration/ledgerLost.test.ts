/** The ledger topic is deleted under a flow that runs: nobody knows any more what is mirrored, so the flow ends and says so. */
import { assert, it } from "vitest"
import { ledgerTopicName } from "../../src/txn/ledger/ledgerTopic.ts"
import { createTopic, deleteTopics, listTopics } from "../kit/admin.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { mirrorConfig, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { untilMirrored } from "./mirrorRun.ts"

const { source, target } = sharedClusters()

for (const mode of ["share", "consumer"] as const) {
  for (const anew of [false, true]) {
    it(`${mode} mode, ${anew ? "deleted and created anew" : "deleted"}: the flow stops for good, in words, and makes no new one`, async () => {
      const topic = unique("lost")
      await createTopic(source, topic)
      await load(source, makeRecords({ topic, count: 50 }))
      const mirror = await startOnceover({
        config: mirrorConfig(source, target, {
          name: topic,
          topics: [topic],
          "group.id": topic,
          "group.protocol": mode,
          "exactly.once.fallback": "fail"
        })
      })
      try {
        await mirror.untilRunning()
        await untilMirrored(source, target, { topic, targetTopic: `east.${topic}` }, [mirror])
        const ledger = ledgerTopicName(topic)
        await deleteTopics(target, [ledger])
        if (anew) await createTopic(target, ledger)
        const { code } = await mirror.exit()
        assert.strictEqual(code, 1, mirror.output())
        assert.match(
          mirror.output(),
          new RegExp(
            `the ledger topic ${ledger} was deleted${
              anew ? " and created anew" : ""
            } while this flow ran\\. What it knew .* is gone`
          )
        )
        assert.strictEqual((await listTopics(target)).has(ledger), anew)
      } finally {
        await mirror.dispose()
      }
    })
  }
}
