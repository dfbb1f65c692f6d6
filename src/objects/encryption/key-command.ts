import { spawn } from 'node:child_process'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { S3Error, slowDown } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { MAX_RECIPIENTS } from './age-header.js'
import { type NamedKey, parseKeys, withNewest } from './key-file.js'

/** Time that the program has for an answer, ms. */
const TIME_LIMIT_MS = 10_000

/** Longest answer, bytes: some ten keys. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Most keys that are kept. */
const MAX_KEPT = 100

/** Time that a key is kept, that there is none, and that the program has failed, ms. */
const KEPT_MS = { key: 5 * 60_000, none: 10_000, failure: 1_000 } as const

/** Most programs at a time, and most questions that wait for one. */
const AT_A_TIME = 4
const MAX_WAITING = 100

/** Most of what the program says about a failure, characters. */
const MAX_COMPLAINT = 300

interface Answer {
  readonly key?: NamedKey | undefined
  readonly failed?: true
}

/** A program that holds keys and prints those of a name, which is its argument: for a vault, or a token. */
export class KeyCommand {
  readonly #program: string
  readonly #timeLimitMs: number
  readonly #log: Logger
  readonly #kept = new LRUCache<string, Answer>({ max: MAX_KEPT, ttl: KEPT_MS.key })
  readonly #asked = new Map<string, Promise<Answer>>()
  readonly #limit = pLimit(AT_A_TIME)

  constructor(program: string, log: Logger, timeLimitMs = TIME_LIMIT_MS) {
    this.#program = program
    this.#timeLimitMs = timeLimitMs
    this.#log = log
  }

  /**
   * The keys of a name; undefined if the program knows none. Throws S3Error if the program fails.
   * @param again also if the program was asked a while ago
   */
  async find(keyId: string, again = false): Promise<NamedKey | undefined> {
    const kept = this.#kept.get(keyId)
    const isOld = kept?.key !== undefined && this.#kept.getRemainingTTL(keyId) < KEPT_MS.key - KEPT_MS.none
    const answer = kept === undefined || (again && isOld) ? await this.#ask(keyId) : kept
    if (answer.failed) throw new S3Error('ServiceUnavailable', { message: FAILED })
    return answer.key
  }

  #ask(keyId: string): Promise<Answer> {
    const asked = this.#asked.get(keyId)
    if (asked) return asked
    if (this.#limit.pendingCount >= MAX_WAITING)
      throw slowDown('Too many requests wait for the program that holds the keys of encrypted objects.')
    const answer = this.#limit(() => this.#run(keyId)).finally(() => this.#asked.delete(keyId))
    this.#asked.set(keyId, answer)
    return answer
  }

  async #run(keyId: string): Promise<Answer> {
    let answer: Answer
    let ttl: number
    try {
      const text = await output(this.#program, keyId, this.#timeLimitMs)
      // The name is that which was asked for.
      const { identities, newest, recipients } = await parseKeys(text.replace(/^\s*#.*$/gm, ''))
      const all = await withNewest(newest, recipients)
      if (all.length > MAX_RECIPIENTS) throw new Error(`it has printed more than ${MAX_RECIPIENTS} recipients`)
      answer = { key: all.length > 0 ? { identities, recipients: all } : undefined }
      ttl = answer.key ? KEPT_MS.key : KEPT_MS.none
    } catch (error) {
      const why = (error as Error).message.replace(/AGE-SECRET-KEY-\S*/gi, '[key]')
      this.#log.warn({ program: this.#program, keyId, why }, 'the program that holds the keys of objects has failed')
      answer = { failed: true }
      ttl = KEPT_MS.failure
    }
    this.#kept.set(keyId, answer, { ttl })
    return answer
  }
}

const FAILED = 'The program that holds the keys of encrypted objects has failed. Try again, or ask the operator.'

/** What a program prints. Rejects if it fails, or takes too long: then it is ended, with all that it has started. */
function output(program: string, argument: string, timeLimitMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [argument], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const printed: Buffer[] = []
    let length = 0
    let complaint = ''
    const fail = (why: string) => {
      clearTimeout(timer)
      if (child.pid !== undefined) endGroup(child.pid)
      child.stdout.destroy()
      child.stderr.destroy()
      reject(new Error(complaint === '' ? why : `${why}: ${complaint}`))
    }
    const timer = setTimeout(() => fail(`it gave no answer within ${timeLimitMs / 1000} seconds`), timeLimitMs)
    child.on('error', (error) => fail(error.message))
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = `${complaint}${chunk.toString()}`.slice(0, MAX_COMPLAINT)
    })
    child.stdout.on('data', (chunk: Buffer) => {
      length += chunk.length
      printed.push(chunk)
      if (length > MAX_ANSWER_BYTES) fail(`it has printed more than ${MAX_ANSWER_BYTES} bytes`)
    })
    child.on('close', (code, signal) => {
      if (code !== 0) return fail(`it has ended with ${signal ?? `code ${code}`}`)
      clearTimeout(timer)
      resolve(Buffer.concat(printed).toString())
    })
  })
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
