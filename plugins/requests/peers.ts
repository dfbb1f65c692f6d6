import { randomBytes } from 'node:crypto'
import type { PluginHost } from 'dealgate/plugin'
import { type Found, foundSchema, type Question, questionSchema } from './look.js'

/** Longest wait for the other processes, ms. One that has not answered then is left out until it is heard of again. */
const MAX_WAIT_MS = 1500
/** Characters of a message: the rest of the bytes that it may have is for its head. */
const PIECE = 900
/** Most texts that have begun to arrive: a piece may be lost, and the rest of such a text never comes. */
const MAX_BEGUN = 100
/** Most processes that are known. */
const MAX_KNOWN = 100

type Signals = PluginHost['signals']

interface Waiting {
  readonly answers: Map<string, Found>
  /** Those that are still to answer. */
  readonly left: Set<string>
  settle(): void
}

/**
 * Asks the other processes on the state, such as the workers of one server. Each tells the others that it is there. A
 * text travels in pieces: `<kind> <from> <to> <id> <number> <pieces> <piece>`, with `-` for all as the receiver.
 */
export class Peers {
  readonly name = randomBytes(4).toString('hex')
  readonly #signals: Signals
  readonly #find: (question: Question) => Found
  readonly #known = new Set<string>()
  readonly #waiting = new Map<string, Waiting>()
  readonly #begun = new Map<string, string[]>()
  readonly #stop: () => void
  #asked = 0

  constructor(signals: Signals, find: (question: Question, name: string) => Found) {
    this.#signals = signals
    this.#find = (question) => find(question, this.name)
    this.#stop = signals.on((message) => this.#hear(message))
    this.#send('hello', '-')
  }

  /** Resolves to what each process has, this one too, and the number of those that have not answered. */
  async ask(question: Question): Promise<{ answers: ReadonlyMap<string, Found>; silent: number }> {
    const answers = new Map([[this.name, this.#find(question)]])
    if (this.#known.size === 0) return { answers, silent: 0 }
    const id = String(++this.#asked)
    const left = new Set(this.#known)
    await new Promise<void>((resolve) => {
      const settle = () => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve()
      }
      const timer = setTimeout(settle, MAX_WAIT_MS)
      this.#waiting.set(id, { answers, left, settle })
      this.#send('ask', '-', id, question)
    })
    for (const silent of left) this.#known.delete(silent)
    return { answers, silent: left.size }
  }

  close(): void {
    this.#stop()
    this.#send('gone', '-')
    for (const { settle } of this.#waiting.values()) settle()
  }

  #send(kind: string, to: string, id = '0', content?: unknown): void {
    const text = content === undefined ? '' : Buffer.from(JSON.stringify(content)).toString('base64url')
    const pieces = Math.max(1, Math.ceil(text.length / PIECE))
    for (let n = 0; n < pieces; n++) {
      const piece = text.slice(n * PIECE, (n + 1) * PIECE)
      this.#signals.send([kind, this.name, to, id, n, pieces, piece].join(' '))
    }
  }

  #hear(message: string): void {
    const [kind = '', from = '', to = '', id = '', number, count, piece = ''] = message.split(' ')
    if (!/^[0-9a-f]{8}$/.test(from) || from === this.name) return
    if (kind === 'gone') this.#forget(from)
    else if (this.#known.size < MAX_KNOWN) this.#known.add(from)
    if (to !== '-' && to !== this.name) return
    const text = this.#whole(`${kind} ${from} ${id}`, Number(number), Number(count), piece)
    if (text === undefined) return
    if (kind === 'hello') this.#send('here', from)
    if (kind === 'ask') this.#answer(from, id, text)
    if (kind === 'found') this.#answered(from, id, text)
  }

  #answer(from: string, id: string, text: string): void {
    const question = questionSchema.safeParse(jsonOf(text))
    if (question.success) this.#send('found', from, id, this.#find(question.data))
  }

  #answered(from: string, id: string, text: string): void {
    const waiting = this.#waiting.get(id)
    const found = foundSchema.safeParse(jsonOf(text))
    if (!waiting || !found.success) return
    waiting.answers.set(from, found.data)
    this.#end(waiting, from)
  }

  #forget(name: string): void {
    this.#known.delete(name)
    for (const waiting of this.#waiting.values()) this.#end(waiting, name)
  }

  #end(waiting: Waiting, name: string): void {
    waiting.left.delete(name)
    if (waiting.left.size === 0) waiting.settle()
  }

  /** The text, once all of its pieces are there; they may come in another order. */
  #whole(of: string, number: number, count: number, piece: string): string | undefined {
    if (count === 1) return piece
    if (!(count > 1 && count < 10_000 && number >= 0 && number < count)) return undefined
    const pieces = this.#begun.get(of) ?? []
    this.#begun.delete(of)
    pieces[number] = piece
    if (Object.keys(pieces).length === count) return pieces.join('')
    this.#begun.set(of, pieces)
    for (const oldest of this.#begun.keys()) {
      if (this.#begun.size <= MAX_BEGUN) break
      this.#begun.delete(oldest)
    }
    return undefined
  }
}

/** Other versions of this program may send something else. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}
