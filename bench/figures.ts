/**
 * What a run has cost, from samples of it. Two figures, because they answer two questions:
 *
 * - whole: from the start of the process until every record is in the target. What a short job costs.
 * - running: from the sample when at least a tenth of the records were in the target until all were. What one more GB costs;
 *   starting, joining a group and creating topics are not in it.
 *
 * Progress is the sum of the target's end offsets. Markers of transactions count there too, a few in a thousand, evenly
 * along the run; the last one makes the last records readable. So the run ends when the sum last grew.
 */
export interface Sample {
  /** Milliseconds since the start of the run. */
  readonly at: number
  /** Processor time so far, seconds. */
  readonly cpuSeconds: number
  readonly rssMb: number
  readonly peakMb: number
  /** Sum of the target's end offsets. */
  readonly offsets: number
  /** Both brokers, seconds. */
  readonly brokerSeconds: number
  /** All cores of the machine, less this program, the mirror and the brokers: what others used, seconds. */
  readonly otherSeconds: number
}

export interface Part {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly bytes: number
  readonly cpuSecondsPerGb: number
  readonly mbPerSecond: number
  readonly recordsPerSecond: number
  /** Cores that the brokers were busy with. */
  readonly brokerCores: number
  /** Cores that others were busy with, who have nothing to do with the run: what lies far above 0 spoils its figures. */
  readonly otherCores: number
}

export interface Figures {
  readonly whole: Part
  /** null: too few samples for one (more than half was there at the first of them). */
  readonly running: Part | null
  readonly peakMb: number
}

const FROM_SHARE = 0.1
const TOO_LATE = 0.5

const part = (from: Sample, to: Sample, records: number, bytes: number): Part => {
  const seconds = (to.at - from.at) / 1000
  const cpuSeconds = to.cpuSeconds - from.cpuSeconds
  return {
    seconds,
    cpuSeconds,
    bytes,
    cpuSecondsPerGb: cpuSeconds / (bytes / 1e9),
    mbPerSecond: bytes / 1e6 / seconds,
    recordsPerSecond: records / seconds,
    brokerCores: (to.brokerSeconds - from.brokerSeconds) / seconds,
    otherCores: Math.max(0, to.otherSeconds - from.otherSeconds) / seconds
  }
}

/** @param bytes record bytes of the whole run (values) */
export const figuresOf = (samples: ReadonlyArray<Sample>, records: number, bytes: number): Figures => {
  const first = samples[0]
  const final = samples.at(-1)?.offsets ?? 0
  const end = samples.find(({ offsets }) => offsets === final)
  if (first === undefined || end === undefined || final === 0) throw new Error("a run without records has no figures")
  const begun = samples.find(({ offsets }) => offsets >= final * FROM_SHARE) ?? end
  const left = (final - begun.offsets) / final
  return {
    whole: part(first, end, records, bytes),
    running: left < 1 - TOO_LATE ? null : part(begun, end, records * left, bytes * left),
    peakMb: end.peakMb
  }
}
