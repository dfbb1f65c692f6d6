import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { endsWithUs } from '../support/server/child.js'
import { inSources } from './source-positions.js'

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
  /** How a file failed as such: `exit code 3`, or no result at all. */
  readonly broken?: string
}

/** After the time limit, tap lists what is still open; then the file is killed. Output may also come late on a busy machine. */
const LAST_WORDS_MS = 15_000
const COUNTS = /^# (\{ total: .* \})$/gm

/**
 * Runs one test file with plain node. tap's own runner adds loaders and a process recorder to every node process that
 * a test starts, which costs more than starting the server does. Child processes and plugins that a test loads find the
 * compiled modules of this package (`dealgate-source` in package.json).
 * @param bundled the file with what it imports
 * @param env further variables of its environment
 */
export async function runFile(
  file: string,
  bundled: string,
  limitMs: number,
  env: Readonly<Record<string, string>>,
): Promise<FileResult> {
  const begun = performance.now()
  const child = spawn(process.execPath, ['--conditions=dealgate-source', bundled], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, ...env, TAP: '1', TAP_TIMEOUT: String(limitMs / 1000) },
  })
  endsWithUs(child)
  let late = false
  const end = () => {
    late = true
    child.kill('SIGALRM')
    setTimeout(() => child.kill('SIGKILL'), LAST_WORDS_MS).unref()
  }
  let timer = setTimeout(end, limitMs)
  // `t.setTimeout` of a file changes its limit.
  child.on('message', (message) => {
    const { setTimeout: own } = message as { setTimeout?: number }
    if (typeof own !== 'number') return
    clearTimeout(timer)
    timer = setTimeout(end, own)
  })
  const chunks: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = once(child, 'close')
  const [code, signal] = await once(child, 'exit')
  // A process that the file left running keeps the output open.
  const complete = await Promise.race([closed.then(() => true), pause(LAST_WORDS_MS, false, { ref: false })])
  child.stdout?.destroy()
  clearTimeout(timer)
  const output = Buffer.concat(chunks).toString('utf8')
  const counts = countsIn(output)
  const left = complete ? undefined : 'a process that it left running'
  const broken = late ? 'the time limit' : (reason(code, signal, counts) ?? left)
  const failed = { total: counts?.total ?? 0, pass: 0, skip: 0, todo: 0, ...counts, fail: counts?.fail ?? 0 }
  return {
    file,
    output: broken || failed.fail > 0 ? inSources(output) : output,
    counts: broken ? { ...failed, total: failed.total + 1, fail: failed.fail + 1 } : failed,
    ms: performance.now() - begun,
    ...(broken && { broken }),
  }
}

/** Failed assertions account for exit code 1. */
function reason(code: number | null, signal: string | null, counts: Partial<Counts> | undefined): string | undefined {
  if (signal) return `signal ${signal}`
  if (code !== 0 && (code !== 1 || !counts?.fail)) return `exit code ${code}`
  return counts ? undefined : 'no result'
}

/** The count that tap prints last: `# { total: 812, pass: 810, fail: 2 }`. */
function countsIn(output: string): Partial<Counts> | undefined {
  const last = [...output.matchAll(COUNTS)].at(-1)?.[1]
  if (last === undefined) return undefined
  return Object.fromEntries([...last.matchAll(/(\w+): (\d+)/g)].map(([, name, count]) => [name, Number(count)]))
}
