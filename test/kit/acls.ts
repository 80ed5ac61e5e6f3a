/** Rights on a test cluster, by Kafka's words. For clusters that check them (`authorizer` below). */
import { AclOperations, AclPermissionTypes, Admin, ResourcePatternTypes, ResourceTypes } from "@platformatic/kafka"
import type { Bootstrap } from "./loader.ts"

/** Broker settings: who connects without a name (the kit, the brokers) may all, others what they are given. */
export const authorizer: Readonly<Record<string, string>> = {
  "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
  "super.users": "User:ANONYMOUS"
}

export type Right = readonly [
  operation: keyof typeof AclOperations,
  resource: "TOPIC" | "GROUP" | "CLUSTER" | "TRANSACTIONAL_ID",
  /** A name, or a beginning of names with "*" behind it. */
  name: string
]

const acl = (user: string, [operation, resource, name]: Right, permission: "ALLOW" | "DENY") => {
  const prefix = name.endsWith("*") && name !== "*"
  return {
    resourceType: ResourceTypes[resource],
    resourceName: prefix ? name.slice(0, -1) : name,
    resourcePatternType: prefix ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
    principal: `User:${user}`,
    host: "*",
    operation: AclOperations[operation],
    permissionType: AclPermissionTypes[permission]
  }
}

const change = async (
  cluster: Bootstrap,
  use: (admin: Admin) => Promise<unknown>
): Promise<void> => {
  const admin = new Admin({ clientId: "kit", bootstrapBrokers: cluster.bootstrap.split(","), retries: 5 })
  try {
    await use(admin)
  } finally {
    await admin.close()
  }
}

export const allow = (cluster: Bootstrap, user: string, rights: ReadonlyArray<Right>): Promise<void> =>
  change(cluster, (admin) => admin.createAcls({ creations: rights.map((right) => acl(user, right, "ALLOW")) }))

/** Wins over whatever is allowed. */
export const deny = (cluster: Bootstrap, user: string, rights: ReadonlyArray<Right>): Promise<void> =>
  change(cluster, (admin) => admin.createAcls({ creations: rights.map((right) => acl(user, right, "DENY")) }))

const takeBack = (cluster: Bootstrap, user: string, rights: ReadonlyArray<Right>, permission: "ALLOW" | "DENY") =>
  change(cluster, (admin) =>
    admin.deleteAcls({
      filters: rights.map((right) => {
        const { resourcePatternType, ...rest } = acl(user, right, permission)
        return { ...rest, resourcePatternType }
      })
    }))

/** Takes a DENY back. */
export const undeny = (cluster: Bootstrap, user: string, rights: ReadonlyArray<Right>): Promise<void> =>
  takeBack(cluster, user, rights, "DENY")

/** Takes an ALLOW back. */
export const revoke = (cluster: Bootstrap, user: string, rights: ReadonlyArray<Right>): Promise<void> =>
  takeBack(cluster, user, rights, "ALLOW")

const nameOf = (table: Readonly<Record<string, number | string>>, code: number): string =>
  Object.entries(table).find(([, value]) => value === code)?.[0] ?? String(code)

/** The rights on topics whose names `wanted` takes, sorted: "ALLOW alice READ LITERAL east.t". */
export const topicRights = async (
  cluster: Bootstrap,
  wanted: (topic: string) => boolean
): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  await change(cluster, async (admin) => {
    const resources = await admin.describeAcls({
      filter: {
        resourceType: ResourceTypes.TOPIC,
        resourceName: null,
        resourcePatternType: ResourcePatternTypes.ANY,
        principal: null,
        host: null,
        operation: AclOperations.ANY,
        permissionType: AclPermissionTypes.ANY
      }
    })
    for (const { acls, resourceName, resourcePatternType } of resources) {
      if (!wanted(resourceName)) continue
      for (const { operation, permissionType, principal } of acls) {
        found.push(
          `${nameOf(AclPermissionTypes, permissionType)} ${principal.replace(/^User:/, "")} ${
            nameOf(AclOperations, operation)
          } ${nameOf(ResourcePatternTypes, resourcePatternType)} ${resourceName}`
        )
      }
    }
  })
  return found.toSorted()
}
