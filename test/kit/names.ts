/** Names that no other test has: the clusters are shared. */
import { randomBytes } from "node:crypto"

/** For a topic, a group or a transactional id. */
export const unique = (prefix: string): string => `${prefix}-${randomBytes(5).toString("hex")}`
