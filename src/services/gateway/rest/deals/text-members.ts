import { GatewayError } from '../../errors.js'
import { collect } from '../../http/collect.js'
import type { Exchange } from '../../http/exchange.js'

/** Largest request body of endpoints about deals, bytes. */
const MOST = 64 * 1024

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * A JSON object of strings. Its member names are case-insensitive, as in Go's decoder. An empty body has no members.
 */
export class TextMembers {
  readonly #members = new Map<string, string>()

  private constructor(given: object) {
    for (const [name, value] of Object.entries(given)) {
      if (typeof value !== 'string') throw invalid(`The member ${name} must be a text, as in {"${name}": "…"}.`)
      if (!value.isWellFormed()) throw invalid(`The member ${name} is not well-formed Unicode.`)
      this.#members.set(name.toLowerCase(), value)
    }
  }

  /** Throws GatewayError InvalidBody. */
  static async read(exchange: Exchange): Promise<TextMembers> {
    const body = await collect(exchange, MOST)
    if (body.length === 0) return new TextMembers({})
    let given: unknown
    try {
      given = JSON.parse(decoder.decode(body))
    } catch {
      throw invalid('The body must be a JSON object of texts.')
    }
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      throw invalid('The body must be a JSON object of texts.')
    }
    return new TextMembers(given)
  }

  /** Returns '' when the member is absent. */
  get(name: string): string {
    return this.#members.get(name.toLowerCase()) ?? ''
  }
}

function invalid(value: string): GatewayError {
  return new GatewayError('InvalidBody', { value })
}
