/** What SQLite stores. */
type Stored = string | number | bigint | Uint8Array | null

/** How a member is stored in its column. */
interface Codec {
  readonly write: (value: never) => Stored
  readonly read: (stored: never) => unknown
}

const codecs = {
  plain: { write: (value: Stored) => value, read: (stored: Stored) => stored },
  /** A boolean, as 1 or 0. */
  flag: { write: (value: boolean) => (value ? 1 : 0), read: (stored: number) => stored === 1 },
  /** NULL for undefined. */
  optional: { write: (value: Stored | undefined) => value ?? null, read: (stored: Stored) => stored ?? undefined },
  /** An amount of any size, as a text. */
  amount: { write: (value: bigint) => String(value), read: (stored: string) => BigInt(stored) },
  /** Texts without commas. */
  list: {
    write: (value: readonly string[]) => value.join(','),
    read: (stored: string) => (stored === '' ? [] : stored.split(',')),
  },
} satisfies Record<string, Codec>

/**
 * Rows of a table as objects: the column of the member `fileName` is `file_name`. The type of a row is that of the
 * table in STRICT mode, but for the members that have a codec.
 */
export class Columns<T extends object> {
  readonly #codecs: ReadonlyMap<string, Codec>
  readonly #members = new Map<string, string>()

  constructor(special: { readonly [K in keyof T & string]?: Codec | keyof typeof codecs }) {
    const entries = Object.entries(special as Record<string, Codec | keyof typeof codecs>)
    this.#codecs = new Map(entries.map(([name, codec]) => [name, typeof codec === 'string' ? codecs[codec] : codec]))
  }

  /** INSERT of these members of a row, whose values `values` gives. */
  insert(table: string, members: readonly (keyof T & string)[]): string {
    return `INSERT INTO ${table} (${members.map((member) => `"${columnOf(member)}"`).join(', ')}) VALUES (${members.map(() => '?').join(', ')})`
  }

  values<K extends keyof T & string>(row: Pick<T, K>, members: readonly K[]): Stored[] {
    return members.map((member) => this.#codec(member).write(row[member] as never))
  }

  /** @param row of `SELECT *`. Each column becomes a member. */
  read(row: Readonly<Record<string, unknown>>): T {
    const members = Object.entries(row).map(([column, stored]) => {
      const member = this.#memberOf(column)
      return [member, this.#codec(member).read(stored as never)]
    })
    return Object.fromEntries(members) as T
  }

  #codec(member: string): Codec {
    return this.#codecs.get(member) ?? codecs.plain
  }

  #memberOf(column: string): string {
    let member = this.#members.get(column)
    if (member === undefined) {
      member = column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      this.#members.set(column, member)
    }
    return member
  }
}

function columnOf(member: string): string {
  return member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
