/** Longest field of a manifest, characters: an encoded key of 1,024 bytes is 3,072. */
const MAX_FIELD = 8192

/**
 * Reads CSV (RFC 4180) as it arrives, in memory that does not grow with it. Lines end with LF or CRLF; empty lines are
 * left out.
 */
export class CsvReader {
  #field = ''
  #fields: string[] = []
  /** Within quotes; after the quote that may end them; elsewhere. */
  #place: 'quoted' | 'quote' | 'plain' = 'plain'
  #quoted = false
  readonly #columns: number

  /** @param columns most fields of a line: without a bound, a line of commas would take all memory */
  constructor(columns: number) {
    this.#columns = columns
  }

  /** Yields the lines that the text completes. Throws RangeError for a field that is too long, or one too many. */
  *push(text: string): Generator<string[]> {
    for (const character of text) {
      if (this.#place === 'quoted') {
        if (character === '"') this.#place = 'quote'
        else this.#add(character)
      } else if (character === '"' && this.#place === 'quote') {
        this.#place = 'quoted'
        this.#add('"')
      } else if (character === '"' && this.#field === '' && !this.#quoted) {
        this.#place = 'quoted'
        this.#quoted = true
      } else {
        this.#place = 'plain'
        if (character === ',') this.#endField()
        else if (character === '\n') yield* this.#endLine()
        else this.#add(character)
      }
    }
  }

  /** Yields the last line, if it has no line break at its end. Throws RangeError for quotes that are still open. */
  *end(): Generator<string[]> {
    if (this.#place === 'quoted') throw new RangeError('a quoted field does not end')
    yield* this.#endLine()
  }

  #add(character: string): void {
    if (this.#field.length >= MAX_FIELD) throw new RangeError(`a field is longer than ${MAX_FIELD} characters`)
    this.#field += character
  }

  #endField(): void {
    if (this.#fields.length >= this.#columns) throw new RangeError(`a line has more than ${this.#columns} fields`)
    this.#fields.push(this.#field)
    this.#field = ''
    this.#quoted = false
  }

  *#endLine(): Generator<string[]> {
    if (!this.#quoted && this.#field.endsWith('\r')) this.#field = this.#field.slice(0, -1)
    const empty = this.#fields.length === 0 && this.#field === '' && !this.#quoted
    this.#endField()
    const fields = this.#fields
    this.#fields = []
    if (!empty) yield fields
  }
}

/** A line of CSV. Only fields that need quotes have them. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')}\n`
}

/** A key as manifests and reports have it: percent-encoded but for its slashes. */
export function encodeKey(key: string): string {
  return encodeURIComponent(key).replaceAll('%2F', '/')
}

/** Decodes a key of a manifest, in which `+` is a space. Throws URIError. */
export function decodeKey(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}
