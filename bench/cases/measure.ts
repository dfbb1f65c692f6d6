import type { Job, Outcome } from '../load/job.js'
import type { Load } from '../load/load.js'
import type { Subject } from '../servers/subject.js'
import type { LoopDelay } from '../usage/probe.js'

/** One run of one subject. */
export interface Run extends Outcome {
  /** Operations, or bytes of large objects. */
  readonly done: number
  /** Seconds of CPU by process, that of the subject first. */
  readonly cpu: Readonly<Record<string, number>>
  /** Of the subject's own process; absent if that is not Node. */
  readonly loopDelay?: LoopDelay
}

/** Runs of the same work by several subjects in turn. */
export interface CaseResult {
  readonly name: string
  /** `op`, or `byte` for large objects. */
  readonly unit: 'op' | 'byte'
  readonly runs: Readonly<Record<string, readonly Run[]>>
}

export async function measure(load: Load, subject: Subject, job: Job, done: number): Promise<Run> {
  const usage = () => Promise.all(subject.processes.map(({ program }) => program.usage()))
  const before = await usage()
  const outcome = await load.run(job).catch((cause: Error) => {
    throw new Error(`${subject.name}: ${cause.message}`, { cause })
  })
  const after = await usage()
  const spent = subject.processes.map(({ name }, i) => [
    name,
    (after[i]?.cpuSeconds ?? 0) - (before[i]?.cpuSeconds ?? 0),
  ])
  const loopDelay = after[0]?.loopDelay
  return { ...outcome, done, cpu: Object.fromEntries(spent), ...(loopDelay && { loopDelay }) }
}

/**
 * Calls `run` for each subject in each round. Each round begins with another subject, so that none has the better
 * place.
 */
export async function interleaved<S>(
  rounds: number,
  subjects: readonly S[],
  run: (subject: S, round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const first = round % subjects.length
    for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)]) await run(subject, round)
  }
}
