/** What two targets of the same source look like, where they differ, and which differences are on purpose. Pure but for the reads. */
import { topicRights } from "../kit/acls.ts"
import { listTopics, topicConfigs } from "../kit/admin.ts"
import type { Bootstrap } from "../kit/loader.ts"

/** Facts as lines: "topic east.a has 2 partitions", "setting east.a retention.ms 5", "right ALLOW ...". */
export const factsOf = async (cluster: Bootstrap): Promise<ReadonlySet<string>> => {
  const facts = new Set<string>()
  for (const [topic, partitions] of await listTopics(cluster)) {
    facts.add(`topic ${topic} has ${partitions} partitions`)
    if (!topic.startsWith("east.") || topic.endsWith(".internal")) continue
    for (const [name, value] of await topicConfigs(cluster, topic)) facts.add(`setting ${topic} ${name}=${value}`)
  }
  for (const right of await topicRights(cluster, () => true)) facts.add(`right ${right}`)
  return facts
}

export interface Purpose {
  /** Whose fact it is. */
  readonly only: "MirrorMaker 2" | "onceover"
  readonly fact: RegExp
  readonly why: string
  /** It need not be seen. */
  readonly optional?: boolean
}

export interface Comparison {
  /** Differences with their purpose; null: not on purpose. */
  readonly differences: ReadonlyArray<
    { readonly only: Purpose["only"]; readonly fact: string; readonly why: string | null }
  >
  /** Purposes that no difference was found for: the table is old, or a test lost its point. */
  readonly idle: ReadonlyArray<Purpose>
  readonly same: number
}

/** Settings are compared where both have the topic. */
const comparable = (facts: ReadonlySet<string>, others: ReadonlySet<string>): ReadonlyArray<string> => {
  const topics = new Set([...others].filter((fact) => fact.startsWith("topic ")).map((fact) => fact.split(" ")[1]))
  return [...facts].filter((fact) => !fact.startsWith("setting ") || topics.has(fact.split(" ")[1]))
}

export const compareFacts = (
  theirs: ReadonlySet<string>,
  ours: ReadonlySet<string>,
  purposes: ReadonlyArray<Purpose>
): Comparison => {
  const used = new Set<Purpose>()
  const explained = (only: Purpose["only"], facts: ReadonlySet<string>, others: ReadonlySet<string>) =>
    comparable(facts, others).filter((fact) => !others.has(fact)).toSorted().map((fact) => {
      const purpose = purposes.find((one) => one.only === only && one.fact.test(fact))
      if (purpose !== undefined) used.add(purpose)
      return { only, fact, why: purpose?.why ?? null }
    })
  return {
    differences: [...explained("MirrorMaker 2", theirs, ours), ...explained("onceover", ours, theirs)],
    idle: purposes.filter((purpose) => !used.has(purpose) && purpose.optional !== true),
    same: [...ours].filter((fact) => theirs.has(fact)).length
  }
}
