import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { inSources } from './source-positions.js'
import type { RunMessage, WorkerMessage } from './worker/messages.js'

export interface Counts {
  readonly total: number
  readonly pass: number
  readonly fail: number
  readonly skip: number
  readonly todo: number
}

export interface FileResult {
  readonly file: string
  /** TAP, as the file prints it. */
  readonly output: string
  readonly counts: Counts
  readonly ms: number
  /** CPU time of the file, of its servers and of other processes that it has ended, ms; 0 if it ended its process. */
  readonly cpuMs: number
  /** How a file failed as such: `exit code 3`, or no result at all. */
  readonly broken?: string
}

/** After the time limit, the worker lists the tests that are still open; then it is killed. */
const LAST_WORDS_MS = 15_000
const COUNTS = /^# (\{ total: .* \})$/gm

/** Has a worker run one test file. */
export async function runFile(worker: ChildProcess, task: RunMessage): Promise<FileResult> {
  const begun = performance.now()
  const output: string[] = []
  const over = new AbortController()
  const limit = new Limit(task.limitMs, () => worker.kill('SIGALRM'))
  const print = (chunk: Buffer) => output.push(chunk.toString('utf8'))
  let cpuMs = 0
  const finished = new Promise<readonly string[] | null>((resolve) => {
    worker.on('message', (message: WorkerMessage) => {
      if ('tap' in message) output.push(message.tap)
      else if ('limitMs' in message) limit.set(message.limitMs)
      else {
        cpuMs = message.cpuMs
        resolve(message.left)
      }
    })
  })
  worker.stdout?.on('data', print)
  worker.send(task)
  const broken = await Promise.race([
    finished.then((left) => (left ? `left open: ${left.join(', ')}` : undefined)),
    once(worker, 'exit', { signal: over.signal }).then(([code, signal]) =>
      signal ? `signal ${signal}` : `exit code ${code}`,
    ),
    limit.over,
  ])
  limit.clear()
  over.abort()
  worker.removeAllListeners('message')
  worker.stdout?.off('data', print)
  const times = { ms: performance.now() - begun, cpuMs }
  return result(task.file, output.join(''), times, limit.passed ? 'the time limit' : broken)
}

function result(
  file: string,
  output: string,
  times: Pick<FileResult, 'ms' | 'cpuMs'>,
  reason: string | undefined,
): FileResult {
  const found = countsIn(output)
  const broken = reason ?? (found ? undefined : 'no result')
  const counts = { total: 0, pass: 0, fail: 0, skip: 0, todo: 0, ...found }
  return {
    file,
    output: broken || counts.fail > 0 ? inSources(output) : output,
    counts: broken ? { ...counts, total: counts.total + 1, fail: counts.fail + 1 } : counts,
    ...times,
    ...(broken && { broken }),
  }
}

/** The count that tap prints last: `# { total: 812, pass: 810, fail: 2 }`. */
function countsIn(output: string): Partial<Counts> | undefined {
  const last = [...output.matchAll(COUNTS)].at(-1)?.[1]
  if (last === undefined) return undefined
  return Object.fromEntries([...last.matchAll(/(\w+): (\d+)/g)].map(([, name, count]) => [name, Number(count)]))
}

/** A time limit that can be set anew. */
class Limit {
  passed = false
  /** Resolves some time after the limit has passed. */
  readonly over: Promise<string>
  readonly #expire: () => void
  #timer: NodeJS.Timeout

  constructor(ms: number, onPass: () => void) {
    let end: (reason: string) => void
    this.over = new Promise((resolve) => {
      end = resolve
    })
    this.#expire = () => {
      this.passed = true
      onPass()
      this.#timer = setTimeout(() => end('the time limit'), LAST_WORDS_MS)
    }
    this.#timer = setTimeout(this.#expire, ms)
  }

  set(ms: number): void {
    if (this.passed) return
    this.clear()
    this.#timer = setTimeout(this.#expire, ms)
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}
