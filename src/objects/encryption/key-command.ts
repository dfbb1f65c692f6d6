import { spawn } from 'node:child_process'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { S3Error, slowDown } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import { MAX_RECIPIENTS } from './age-header.js'
import { isKeyId, type NamedKey, parseKeys, withNewest } from './key-file.js'

/** Time that the program has for an answer, ms. */
const MAX_ANSWER_MS = 10_000

/** Longest answer, bytes: some ten keys. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Most keys that are kept, and most names without one. */
const MAX_KEPT = 100
const MAX_REFUSED = 1_000

/** Time that a key is kept, that there is none, and that the program has failed, ms. */
const KEPT_MS = { key: 5 * 60_000, none: 10_000, failure: 1_000 } as const

/** Most programs at a time, most questions that wait for one, and how long each does, ms. */
const MAX_CONCURRENCY = 4
const MAX_WAITING = 100
const PATIENCE_MS = 15_000

/** Most of what the program says about a failure, characters. */
const MAX_COMPLAINT = 300

/** A key, that there is none, or that the program has failed. */
type Answer = NamedKey | 'none' | 'failure'

/** A program that holds keys and prints those of a name, which is its argument: for a vault, or a token. */
export class KeyCommand {
  readonly #program: string
  readonly #timeLimitMs: number
  readonly #log: Logger
  readonly #keys = new LRUCache<string, NamedKey>({ max: MAX_KEPT, ttl: KEPT_MS.key })
  /** Refusals are kept apart from the keys: names that a client makes up push no key out. */
  readonly #refused = new LRUCache<string, 'none' | 'failure'>({ max: MAX_REFUSED })
  readonly #asked = new Map<string, Promise<Answer>>()
  readonly #limit = pLimit(MAX_CONCURRENCY)

  constructor(program: string, log: Logger, timeLimitMs = MAX_ANSWER_MS) {
    this.#program = program
    this.#timeLimitMs = timeLimitMs
    this.#log = log
  }

  /**
   * The keys of a name; undefined if the program knows none. Throws S3Error if the program fails.
   * @param again also if the program was asked a while ago
   */
  async find(keyId: string, again = false): Promise<NamedKey | undefined> {
    // A gateway of others may have any text beside an object.
    if (!isKeyId(keyId)) return undefined
    const key = this.#keys.get(keyId)
    const isOld = again && this.#keys.getRemainingTTL(keyId) < KEPT_MS.key - KEPT_MS.none
    if (key && !isOld) return key
    const answer = this.#refused.get(keyId) ?? (await this.#ask(keyId))
    if (answer === 'none') return undefined
    if (answer !== 'failure') return answer
    // A key that was good a moment ago still opens objects.
    if (key) return key
    throw new S3Error('ServiceUnavailable', { message: FAILED })
  }

  #ask(keyId: string): Promise<Answer> {
    const asked = this.#asked.get(keyId)
    if (asked) return asked
    if (this.#limit.pendingCount >= MAX_WAITING) throw tooMany()
    const late = performance.now() + PATIENCE_MS
    const answer = this.#limit(() => {
      if (performance.now() > late) throw tooMany()
      return this.#run(keyId)
    }).finally(() => this.#asked.delete(keyId))
    this.#asked.set(keyId, answer)
    return answer
  }

  async #run(keyId: string): Promise<Answer> {
    try {
      const text = await output(this.#program, keyId, this.#timeLimitMs)
      // The name is that which was asked for.
      const { identities, newest, recipients } = await parseKeys(text.replace(/^\s*#.*$/gm, ''))
      const all = await withNewest(newest, recipients)
      if (all.length > MAX_RECIPIENTS) throw new Error(`it has printed more than ${MAX_RECIPIENTS} recipients`)
      if (all.length > 0) {
        const key = { identities, recipients: all }
        this.#keys.set(keyId, key)
        return key
      }
      this.#keys.delete(keyId)
      return this.#refuse(keyId, 'none')
    } catch (error) {
      const why = (error as Error).message.replace(/AGE-SECRET-KEY-\S*/gi, '[key]')
      this.#log.warn({ program: this.#program, keyId, why }, 'the program that holds the keys of objects has failed')
      return this.#refuse(keyId, 'failure')
    }
  }

  #refuse(keyId: string, answer: 'none' | 'failure'): Answer {
    this.#refused.set(keyId, answer, { ttl: KEPT_MS[answer] })
    return answer
  }
}

function tooMany(): S3Error {
  return slowDown('Too many requests wait for the program that holds the keys of encrypted objects.')
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
