import { setTimeout as sleep } from 'node:timers/promises'
import { type S3Error, toS3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import type { TaskResult } from './order.js'
import type { BatchRun, Chunk } from './records.js'
import type { Send, Task } from './task.js'
import type { TaskKind } from './task-kinds.js'

interface Working {
  readonly run: BatchRun
  readonly kind: TaskKind
  readonly send: Send
  readonly signal: AbortSignal
  /** Waits until another task may begin, and resolves to what is to be called at its end. */
  readonly enter: (signal: AbortSignal) => Promise<() => void>
  /** Awaited before each task. Throws once the job is to pause or to end. */
  readonly check: () => Promise<void>
  /** Called every five seconds, also while all tasks wait. Throws as `check`, or for what other servers were asked. */
  readonly look: () => Promise<unknown>
  /** ms since 1970 */
  readonly now: () => number
  /** Called with what is known of a chunk that is being worked on. */
  readonly show: (chunk: Omit<Chunk, 'epoch'>) => void
}

/** Why tasks of a chunk have to be tried later: the cap of the day is reached, or the gateway does not answer. */
type Postponed = 'budget' | 'gateway'

/** Codes of answers that say nothing about the object: it is tried again. */
export const UNAVAILABLE: readonly string[] = [
  'ServiceUnavailable',
  'SlowDown',
  'UpstreamUnavailable',
  'PluginUnavailable',
]

/** Pauses between attempts of a task, ms. */
const PAUSES = [500, 1000, 2000]

/** Postponements after which a task fails: about an hour without an answer, and a week of caps that are reached. */
const MAX_DELAYS = 8
const MAX_REFUSALS = 7

/** Interval at which results of a chunk are recorded before it is done, ms: its tasks may take minutes each. */
const SAVE_MS = 5000

/** Interval of looks at what clients have asked, ms. */
const LOOK_MS = 5000

interface Attempted {
  readonly result?: TaskResult
  readonly postponed?: {
    readonly why: Postponed
    readonly failure: S3Error
    /** The task may be done, though no answer says so. */
    readonly isOpen: boolean
  }
}

/**
 * Carries out the tasks of a chunk that have no result yet, and records their results. What `check` throws ends it; the
 * results so far are recorded.
 */
export async function workChunk(working: Working, number: number): Promise<Chunk | Postponed> {
  const { run, kind, signal, now, show } = working
  const chunk = await run.chunk(number)
  const { rows } = chunk
  const results = rows.map((_, at) => chunk.results?.[at] ?? null)
  const refused: Record<number, number> = { ...chunk.refused }
  const delayed: Record<number, number> = { ...chunk.delayed }
  const todo = rows.flatMap((row, at) => (results[at] ? [] : [{ row, at }]))
  const tried = new Map<number, number>()
  for (const { at } of todo) {
    const since = chunk.tried?.[at] ?? chunk.begun
    if (since !== undefined) tried.set(at, since)
  }
  const present = () => ({
    ...{ rows, results: [...results], tried: Object.fromEntries(tried) },
    ...{ refused: { ...refused }, delayed: { ...delayed } },
  })
  const save = () => run.put(number, { ...present(), begun: now() })
  await save()
  let saved = performance.now()
  let saving: Promise<void> | undefined
  let stop: { readonly thrown: unknown } | undefined
  const waiting: { readonly at: number; readonly why: Postponed; readonly failure: S3Error }[] = []
  let answered = 0
  // Tasks that begin no more do not wait for their turns. Node 20 may collect what AbortSignal.any joins.
  const over = new AbortController()
  const end = (thrown: unknown) => {
    stop ??= { thrown }
    over.abort(thrown)
  }
  const onAbort = () => end(signal.reason)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  const looking = setInterval(() => working.look().catch(end), LOOK_MS)
  await pMap(
    todo,
    async ({ row, at }) => {
      if (stop || waiting.length > 0) return
      const token = `batch-${run.id}-${number}-${at}-${refused[at] ?? 0}`
      let leave = () => {}
      try {
        leave = await working.enter(over.signal)
        await working.check()
        if (stop || waiting.length > 0) return
        const [triedSince, began] = [tried.get(at), now()]
        tried.set(at, triedSince ?? began)
        const { result, postponed } = await attempt(working, { row, token, triedSince }, began)
        if (!postponed?.isOpen) tried.delete(at)
        if (postponed) {
          waiting.push({ at, ...postponed })
          over.abort()
        }
        if (!result) return
        answered++
        results[at] = result
      } catch (thrown) {
        if (thrown !== over.signal.reason) end(thrown)
        return
      } finally {
        leave()
      }
      show(present())
      if (saving === undefined && performance.now() - saved > SAVE_MS) {
        saved = performance.now()
        saving = save().finally(() => {
          saving = undefined
        })
        await saving
      }
    },
    { concurrency: kind.concurrency },
  ).finally(() => {
    clearInterval(looking)
    signal.removeEventListener('abort', onAbort)
    return saving
  })
  for (const { at, why, failure } of waiting) {
    const counts = why === 'budget' ? refused : delayed
    counts[at] = (counts[at] ?? 0) + 1
    const most = why === 'budget' ? MAX_REFUSALS : answered > 0 ? 2 : MAX_DELAYS
    // Another key may go on being refused, and the other tasks have to be done.
    if (counts[at] >= most) results[at] = failureOf(failure)
  }
  const done = present()
  await run.put(number, done)
  show(done)
  if (stop) throw stop.thrown
  if (results.every((result) => result !== null)) return { ...done, epoch: run.epoch }
  return waiting.some(({ why }) => why === 'gateway') ? 'gateway' : 'budget'
}

/** Throws for what ends the job: its key pair is gone, another server runs it, or it was stopped. */
async function attempt({ kind, send, signal }: Working, first: Task, began: number): Promise<Attempted> {
  let task = first
  for (let tries = 0; ; tries++) {
    try {
      const { status, message } = await kind.run(task, send, signal)
      return { result: { ok: true, status, ...(message && { message }) } }
    } catch (thrown) {
      signal.throwIfAborted()
      const failure = toS3Error(thrown)
      if (failure.code === 'InvalidAccessKeyId') throw failure
      if (failure.code === 'SpendCapReached')
        return { postponed: { why: 'budget', failure, isOpen: task.triedSince !== undefined } }
      const pause = PAUSES[tries]
      const mayPass = failure.status >= 500 && failure.status !== 501
      if (!mayPass) return { result: failureOf(failure) }
      // The answer does not tell that nothing was done.
      task = { ...first, triedSince: first.triedSince ?? began }
      if (pause !== undefined) await sleep(pause, undefined, { signal })
      else if (UNAVAILABLE.includes(failure.code)) return { postponed: { why: 'gateway', failure, isOpen: true } }
      else return { result: failureOf(failure) }
    }
  }
}

function failureOf({ status, code, message }: S3Error): TaskResult {
  return { ok: false, status, code, message: message.slice(0, 1000) }
}
