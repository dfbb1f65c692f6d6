import { z } from 'zod'

/** How the value of an option is read, from the text of a flag or variable and from the JSON of a file alike, and how help describes it. */
export interface Kind<T> {
  /** Stands for the value in help: `number`. */
  readonly placeholder: string
  /** What is accepted, in words: bounds, choices, form. */
  readonly accepts: string
  readonly schema: z.ZodType<T>
  /** The flag may be given more than once; in a variable the values are separated by commas. */
  readonly repeatable?: true
  /** What the flag says when it stands without a value; absent: it needs one. */
  readonly alone?: string
  /** What the value means where it is found: in this folder, of the config file or the working one. */
  locate?(value: T, folder: string): T
}

export function integer(min: number, max: number): Kind<number> {
  const accepts = `${min} to ${max}`
  const error = `must be a whole number from ${accepts}`
  const digits = z
    .string({ error })
    .regex(/^-?\d{1,15}$/, error)
    .transform(Number)
  return {
    placeholder: 'number',
    accepts,
    schema: z.union([z.number(), digits], { error }).pipe(z.number().int(error).min(min, error).max(max, error)),
  }
}

/** A number that may have a fraction. */
export function decimal(min: number, max: number): Kind<number> {
  const accepts = `${min} to ${max}`
  const error = `must be a number from ${accepts}`
  const digits = z
    .string({ error })
    .regex(/^\d{1,15}(\.\d{1,15})?$/, error)
    .transform(Number)
  return {
    placeholder: 'number',
    accepts,
    schema: z.union([z.number(), digits], { error }).pipe(z.number().min(min, error).max(max, error)),
  }
}

export function choice<const T extends string>(...values: readonly T[]): Kind<T> {
  const accepts = values.join(', ')
  return { placeholder: 'word', accepts, schema: z.enum(values, { error: `must be one of ${accepts}` }) }
}

export const onOff: Kind<boolean> = {
  placeholder: 'on|off',
  accepts: 'on, off',
  alone: 'on',
  schema: z.union([z.boolean(), z.enum(['on', 'off']).transform((word) => word === 'on')], {
    error: 'must be on or off',
  }),
}

/** Text of a given form; `accepts` says the form in words that follow "must be". */
export function text(placeholder: string, accepts: string, form: RegExp): Kind<string> {
  const error = `must be ${accepts}`
  return { placeholder, accepts, schema: z.string({ error }).regex(form, error) }
}

/** A URL of one of these schemes. Secrets in it are for databases and nodes of networks: the others have options of their own for them. */
export function url(...schemes: readonly string[]): Kind<string> {
  const accepts = schemes.map((scheme) => `${scheme}://…`).join(', ')
  const error = `must be a URL: ${accepts}`
  const fits = (value: string) => URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1))
  return { placeholder: 'url', accepts, schema: z.string({ error }).refine(fits, error) }
}

/** The address of an HTTP server, perhaps below a path; nothing else in it. */
export function httpUrl(): Kind<string> {
  const kind = url('http', 'https')
  const isAddress = (value: string) => {
    const { username, password, search, hash } = new URL(value)
    return username + password + search + hash === ''
  }
  const error = 'must be an address without user, query and fragment'
  return { ...kind, schema: kind.schema.refine((value) => !URL.canParse(value) || isAddress(value), error) }
}

/** Scheme and host of an HTTP server, nothing else. */
export function origin(): Kind<string> {
  const kind = httpUrl()
  const error = 'must be scheme and host alone'
  const isOrigin = (value: string) => !URL.canParse(value) || new URL(value).pathname === '/'
  return { ...kind, schema: kind.schema.refine(isOrigin, error) }
}

/** Several values of one kind: a repeated flag, a comma-separated variable, an array in the file. */
export function list<T>(kind: Kind<T>): Kind<readonly T[]> {
  const split = z.string().transform((value) => value.split(','))
  const schema = z.union([z.array(z.unknown()), split], { error: 'must be a list' }).pipe(z.array(kind.schema))
  return {
    placeholder: kind.placeholder,
    accepts: kind.accepts,
    schema: schema as z.ZodType<readonly T[]>,
    repeatable: true,
  }
}

/** Text in a form that `read` checks: it throws an Error whose message says what is wrong, in words that follow "is not valid:". */
export function checkedText(placeholder: string, accepts: string, read: (value: string) => unknown): Kind<string> {
  const schema = z.string({ error: `must be ${accepts}` }).superRefine((value, context) => {
    try {
      read(value)
    } catch (error) {
      context.addIssue({ code: 'custom', message: `is not valid: ${(error as Error).message}` })
    }
  })
  return { placeholder, accepts, schema }
}
