import {
  type DocumentFields,
  type Kind,
  type KindOf,
  redact,
  repeatable,
  S3Error,
  type ServiceAnswer,
  unrepeatable,
} from 'dealgate/plugin'
import { z } from 'zod'
import { TokenRefused } from './sign-in.js'

const scalar = z.union([z.string(), z.number(), z.boolean()])

const numeric = z.preprocess(
  (value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value),
  z.number(),
)

/**
 * Members of the answers of a service, parsed leniently: deployments omit members, or send numbers as text and text as
 * numbers.
 */
export const lenient = {
  /** Missing: ''. */
  text: scalar.nullish().transform((value) => String(value ?? '')),
  /** Missing: null. */
  nullableText: scalar.nullish().transform((value) => (value === null || value === undefined ? null : String(value))),
  numeric,
  /** Any other value: 0. */
  count: numeric.pipe(z.int()).catch(0),
  /** `true`, `1`, `"1"` or `"true"`; any other value is false. */
  flag: z
    .unknown()
    .optional()
    .transform((value) => value === true || /^(?:1|true)$/i.test(String(value))),
}

/** How a value of an answer is read, and the schema of what results show of it. */
export interface AnswerPart<Shown extends z.ZodType = z.ZodType> {
  readonly read: z.ZodType<z.output<Shown>>
  readonly shown: Shown
}

const flag = { read: lenient.flag, shown: z.boolean() }
const count = { read: lenient.count, shown: z.number().int() }

/** Unix seconds in RFC 3339; undefined for 0, which stands for never. */
const time = {
  read: lenient.count.transform((seconds) =>
    seconds > 0 && seconds < 1e11 ? `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` : undefined,
  ),
  shown: z.string().optional().describe('The same in RFC 3339.'),
}

/** A text such as `0.0001 FIL/GiB/day`, whose number some deployments leave out. */
const statistic = z.object({
  Text: z.string().describe('As the service wrote it.'),
  Value: z.number().optional(),
  Unit: z.string().optional(),
})

function statisticOf(text: string): z.output<typeof statistic> {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)?\s*(.*?)\s*$/.exec(text) ?? []
  return { Text: text, ...(digits !== undefined && { Value: Number(digits) }), ...(unit !== '' && { Unit: unit }) }
}

/** How the values of each kind are read. */
export const answerParts = {
  text: { read: lenient.text, shown: z.string() },
  nullableText: { read: lenient.nullableText, shown: z.string().nullable() },
  count,
  /** Any other value: 0; with a fraction. */
  amount: { read: numeric.catch(0), shown: z.number() },
  /** Any other value: null. */
  nullableNumber: { read: numeric.nullable().catch(null), shown: z.number().int().nullable() },
  flag,
  bit: flag,
  seconds: { ...count, shown: count.shown.describe('Unix seconds; 0 for never.') },
  statistic: {
    read: z
      .unknown()
      .optional()
      .transform((value) => (value === undefined || value === null ? undefined : statisticOf(String(value)))),
    shown: statistic.optional(),
  },
} satisfies Record<Kind, AnswerPart>

interface Member<Shown extends z.ZodType = z.ZodType> extends AnswerPart<Shown> {
  readonly wire: readonly string[]
}

/**
 * A member of an answer.
 * @param wire its name in the answer of the service, or its names in the answers of several deployments
 * @param description for the documentation of results
 */
export function member<Shown extends z.ZodType>(
  wire: string | readonly string[],
  { read, shown }: AnswerPart<Shown>,
  description?: string,
): Member<Shown> {
  return { wire: [wire].flat(), read, shown: description === undefined ? shown : shown.describe(description) }
}

type Pascal<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Capitalize<First>}${Pascal<Rest>}`
  : Capitalize<Name>

/** `UpdatedTime` beside `UpdatedAt`. */
type TimeName<Name extends string> = Name extends `${infer Event}At` ? `${Event}Time` : `${Name}Time`

type NameOf<Name, Names> = Name extends keyof Names & string
  ? Names[Name] & string
  : Name extends string
    ? Pascal<Name>
    : never

type Members<Fields extends DocumentFields, Names> = {
  [Name in keyof Fields as NameOf<Name, Names>]: Member<(typeof answerParts)[KindOf<Fields[Name]>]['shown']>
} & {
  [Name in keyof Fields as KindOf<Fields[Name]> extends 'seconds' ? TimeName<NameOf<Name, Names>> : never]: Member<
    typeof time.shown
  >
}

/**
 * The members of a document of a service, by their names in results: in PascalCase. A time in seconds is shown in RFC
 * 3339, too.
 * @param names other names in results
 */
export function membersOf<
  const Fields extends DocumentFields,
  const Names extends { readonly [Name in keyof Fields]?: string } = Readonly<Record<never, string>>,
>(fields: Fields, names?: Names): Members<Fields, Names> {
  const all = Object.entries(fields).flatMap(([wire, field]) => {
    const [kind, meaning] = typeof field === 'string' ? [field] : field
    const name = names?.[wire] ?? wire.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())
    const named = [name, member(wire, answerParts[kind] as AnswerPart, meaning)] as const
    return kind === 'seconds' ? [named, [name.replace(/At$|$/, 'Time'), member(wire, time)] as const] : [named]
  })
  return Object.fromEntries(all) as unknown as Members<Fields, Names>
}

/** @param element name of one item in XML */
export function listed<Shown extends z.ZodType>(
  { read, shown }: AnswerPart<Shown>,
  element: string,
): AnswerPart<z.ZodArray<Shown>> {
  // A missing list and null are empty.
  const items = z.preprocess((list) => list ?? [], z.array(read)) as unknown as z.ZodType<z.output<z.ZodArray<Shown>>>
  return { read: items, shown: z.array(shown).meta({ element }) }
}

type Shown<Members extends Readonly<Record<string, Member>>> = z.ZodObject<{
  [Name in keyof Members]: Members[Name]['shown']
}>

/**
 * An object of an answer, declared once: `read` turns the words of the service into the names of results, in which a
 * member that is undefined is absent, and `shown` is the schema of that.
 * @param members by their names in results
 */
export function answerShape<Members extends Readonly<Record<string, Member>>>(
  members: Members,
): AnswerPart<Shown<Members>> {
  const all = Object.entries(members)
  const named = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const answer = value as Readonly<Record<string, unknown>>
    return Object.fromEntries(
      all.map(([name, { wire }]) => [name, wire.map((one) => answer[one]).find((found) => found !== undefined)]),
    )
  }
  const read = z
    .preprocess(named, z.object(Object.fromEntries(all.map(([name, part]) => [name, part.read]))))
    .transform((found) => Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined)))
  return {
    read: read as unknown as AnswerPart<Shown<Members>>['read'],
    shown: z.object(Object.fromEntries(all.map(([name, part]) => [name, part.shown]))) as unknown as Shown<Members>,
  }
}

/** Envelope of every answer. Status words differ in case between deployments, and `code` may be a number or a text. */
const envelope = z.looseObject({
  status: lenient.text,
  code: lenient.text,
  message: lenient.text,
  data: z.unknown().optional(),
})

export type Envelope = z.output<typeof envelope>

/** Longest part of a text of a service that a message quotes, characters. */
const MAX_QUOTED = 500

/** A service's own text, for a message. */
export function quoted(text: string): string {
  return redact(text.trim().slice(0, MAX_QUOTED))
}

export interface AnswerReaderOptions<Refusals> {
  /** Its name in messages: `task platform`. */
  readonly service: string
  /**
   * The error of a refusal. The status is 200 to 299 for one that the envelope alone states.
   * @param refusals what the call knows of its refusals
   */
  refusal(status: number, said: Envelope, refusals: Partial<Refusals>): Error
  /** Whether an answer with a status of 500 or more is a refusal, not a failure that passes. Default never. */
  isRefusal?(said: Envelope): boolean
}

/** Reads the answers of a service that wraps its data in an envelope with `status`, `message` and `data`. */
export class AnswerReader<Refusals extends object> {
  readonly #options: AnswerReaderOptions<Refusals>

  constructor(options: AnswerReaderOptions<Refusals>) {
    this.#options = options
  }

  /**
   * The envelope of an answer that reports success.
   * @throws S3Error SlowDown, UpstreamUnavailable, UpstreamBadResponse, and what `refusal` returns
   */
  successOf(answer: ServiceAnswer, refusals: Partial<Refusals> = {}): Envelope {
    const { service, refusal, isRefusal = () => false } = this.#options
    const said = envelope.safeParse(answer.json).data
    const { status } = answer
    if (status >= 200 && status < 300) {
      if (!said) throw badResponse(`The ${service} gave an answer that is not JSON.`)
      if (said.status === '' || said.status.toLowerCase() === 'success') return said
    } else {
      if (status === 429 || (status >= 500 && !(said && isRefusal(said)))) throw this.#busy(answer, said)
      if (!said) throw badResponse(`The ${service} answered with status ${status}, which this server does not know.`)
    }
    throw refusal(status, said, refusals)
  }

  /** The data of a successful answer in its form. Throws UpstreamBadResponse, and as `successOf`. */
  dataOf<T>(answer: ServiceAnswer, schema: z.ZodType<T>, refusals?: Partial<Refusals>): T {
    return this.inForm(this.successOf(answer, refusals).data, schema)
  }

  /** Throws UpstreamBadResponse. */
  inForm<T>(value: unknown, schema: z.ZodType<T>): T {
    const read = schema.safeParse(value)
    if (read.success) return read.data
    throw badResponse(`The ${this.#options.service} gave an unexpected answer.`)
  }

  /**
   * Runs a call of a client, to whom a refused token is UpstreamAuthFailed and a lost answer an S3Error.
   * @param mayRepeat false for a request that must not be sent twice unseen
   */
  async forClient<T>(run: () => Promise<T>, mayRepeat = true): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (error instanceof TokenRefused) {
        const message = `The ${this.#options.service} says: ${error.message}`
        throw new S3Error('UpstreamAuthFailed', { message, cause: error })
      }
      throw mayRepeat ? repeatable(error) : unrepeatable(error)
    }
  }

  #busy({ status, retryAfter }: ServiceAnswer, said: Envelope | undefined): S3Error {
    const wait = retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? retryAfter : '2'
    const reason = quoted(said?.message || said?.status || '') || status
    return new S3Error(status === 429 ? 'SlowDown' : 'UpstreamUnavailable', {
      message: `The ${this.#options.service} cannot do this now: ${reason}`,
      headers: { 'retry-after': wait },
    })
  }
}

export function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}
