import { z } from 'zod'
import { parseAddress } from './addresses.js'
import { type Kind, PaymentError } from './errors.js'

/** Longest text of a field. */
const MAX_TEXT = 1024

/** Refuses a member in a schema, by a kind of refusal. */
function refuse(context: { addIssue(issue: { code: 'custom'; message: string; params: object }): void }) {
  return (kind: Kind, message: string): never => {
    context.addIssue({ code: 'custom', message, params: { kind } })
    return z.NEVER
  }
}

/** A text without spaces around it; undefined when it is absent or empty. */
export function text(name: string) {
  return z
    .string()
    .optional()
    .transform((given, context) => {
      const text = given?.trim() ?? ''
      // SQLite cuts texts at NUL.
      if (text.length > MAX_TEXT || text.includes('\0') || !text.isWellFormed()) {
        return refuse(context)('value', `${name} must be a text of at most ${MAX_TEXT} characters`)
      }
      return text === '' ? undefined : text
    })
}

/** A text that must not be absent or empty. */
export function required(name: string) {
  return text(name).transform((text, context) => text ?? refuse(context)('missing', `${name} is required`))
}

/** A text that has a form. @param read returns undefined for another text */
export function formed<T>(
  schema: z.ZodType<string, string | undefined>,
  kind: Kind,
  refusal: string,
  read: (text: string) => T | undefined,
) {
  return schema.transform((text, context) => read(text) ?? refuse(context)(kind, refusal))
}

/** Refuses a value that fails a test. */
export function passing<T>(
  schema: z.ZodType<T, string | undefined>,
  kind: Kind,
  refusal: string,
  test: (value: T) => boolean,
) {
  return schema.transform((value, context) => (test(value) ? value : refuse(context)(kind, refusal)))
}

/** A number above 0, such as an id. */
export function id(name: string) {
  const number = formed(required(name), 'type', `${name} must be a valid number`, (text) =>
    /^-?\d{1,15}$/.test(text) ? Number(text) : undefined,
  )
  return passing(number, 'value', `${name} must be greater than 0`, (id) => id >= 1)
}

const NO_ADDRESS = 'must be 0x and 40 hexadecimal digits'

/** An address, in lower case. */
export function address(name: string) {
  return formed(required(name), 'value', `${name} ${NO_ADDRESS}`, parseAddress).describe(
    'An address: 0x and 40 digits.',
  )
}

/** `wallet_address` of a request, in lower case, which after a sign-in may be left out. */
export function walletAddress() {
  return text('wallet_address')
    .transform((text, context) => {
      const address = text === undefined ? undefined : parseAddress(text)
      const isWrong = text !== undefined && address === undefined
      return isWrong ? refuse(context)('value', `wallet_address ${NO_ADDRESS}`) : address
    })
    .describe('The wallet; after a sign-in, the one that signed in, and may be left out.')
}

/** Reads a part of a request by its schema. Throws PaymentError for the first wrong member. */
export function parsed<S extends z.ZodType>(schema: S | undefined, value: unknown): z.output<S> {
  if (schema === undefined) return {} as z.output<S>
  const { data, error } = schema.safeParse(value)
  if (error === undefined) return data as z.output<S>
  const [issue] = error.issues
  const kind = issue?.code === 'custom' ? (issue.params?.kind as Kind | undefined) : undefined
  throw new PaymentError(kind ?? 'value', issue?.message ?? 'the request is not valid')
}
