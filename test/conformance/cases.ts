/** All conformance cases. Expected values are Kafka 4.4.0's; nothing in a case knows which cluster it runs on. */
import type { Case } from "./bench.ts"
import { adminCases } from "./adminCases.ts"
import { produceCases } from "./produceCases.ts"
import { shareCases } from "./shareCases.ts"
import { transactionCases } from "./transactionCases.ts"

export const allCases: ReadonlyArray<Case> = [...produceCases, ...transactionCases, ...shareCases, ...adminCases]
