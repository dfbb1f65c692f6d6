import { resolve } from 'node:path'
import { z } from 'zod'
import type { Rate } from '../../common/client-rate.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/time.js'
import { parseWebhook, parseWebhookSecret } from '../../plugins/notifications/webhooks.js'
import { parseQuirks } from '../../services/gateway/legacy/quirks.js'
import { parseS3Url } from '../../services/store/s3-location.js'
import { parseRole, readIssuer } from '../oidc/roles.js'
import type { PluginUse } from '../process/load-plugins.js'

export const regionName = text('name', 'letters, digits and - only', /^[A-Za-z0-9-]{1,64}$/)

export const brandWord = text('word', 'lower-case letters and digits, a letter first', /^[a-z][a-z0-9]{0,30}$/)
// `/` and `,` and `=` separate the parts of an Authorization header: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
export const accessKey = text(
  'id',
  '3 to 128 characters of ASCII without space , / =',
  /^(?:(?![,/=])[\x21-\x7e]){3,128}$/,
)

export const secretKey = text('secret', '8 to 128 characters of ASCII without space', /^[\x21-\x7e]{8,128}$/)

export const quirks = checkedText('names', 'none, legacy, or names of quirks joined by commas', parseQuirks)

export const webhook = checkedText('name=url', 'a name, = and an http or https URL', parseWebhook)

export const webhookSecret = checkedText('name=secret', 'the name of a webhook, = and a secret', parseWebhookSecret)

export const oidcIssuer = checkedText('url', 'an https URL without a query, or http on this machine', readIssuer)

export const oidcRole = checkedText(
  'id:claim=value',
  'an access key id, :, the name of a claim, = and its value',
  parseRole,
)

export const s3Place = checkedText('url', 'like s3://bucket/prefix?endpoint=https://host&region=us-east-1', parseS3Url)

/** Base 32 without the letters that look alike; a recipient of the post-quantum form is long. */
export const recipient = text('age1…', 'a public key of age', /^age1[0-9a-z]{50,4000}$/)

export const mailAddress = text('address', 'a mail address', /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,190}$/)

export const basePath = text('path', 'a path that starts with / and does not end in one', /^(?:\/[^/?#\s,]+)+$/)

/** Parses and describes the value of an option: text from a flag or variable, or JSON from the config file. */
export interface Kind<T> {
  /** Placeholder of the value in help: `number`. */
  readonly placeholder: string
  /** Description of accepted values: bounds, choices, form. */
  readonly accepts: string
  /** Made when a value is read: a start has few values, and a schema for each option costs it 10 ms. */
  schema(): z.ZodType<T>
  /** Words that shells complete. */
  readonly words?: readonly string[]
  /** The flag may be repeated; in a variable, commas separate the values. */
  readonly repeatable?: true
  /** Value of the flag without an argument; if absent, the flag requires an argument. */
  readonly alone?: string
  /** Resolves the value against the folder of the config file, or the working directory. */
  locate?(value: T, folder: string): T
  /** The unit in which users state a time; absent for other kinds. */
  readonly unit?: TimeUnit
  /** The value as users state it; absent if that is the value itself. */
  stated?(value: T): unknown
}

export function integer(min: number, max: number): Kind<number> {
  const accepts = `${min} to ${max}`
  const error = `must be a whole number from ${accepts}`
  const digits = () =>
    z
      .string({ error })
      .regex(/^-?\d{1,15}$/, error)
      .transform(Number)
  return {
    placeholder: 'number',
    accepts,
    schema: () =>
      z.union([z.number(), digits()], { error }).pipe(z.number().int(error).min(min, error).max(max, error)),
  }
}

const UNIT_MS = { seconds: 1000, minutes: MINUTE_MS, hours: HOUR_MS, days: DAY_MS }

type TimeUnit = keyof typeof UNIT_MS

/** A time: whole units for users, and milliseconds for the program. Its option has a name in `Ms`: see `nameOf`. */
export function time(unit: TimeUnit, min: number, max: number): Kind<number> {
  const units = integer(min, max)
  return {
    ...units,
    unit,
    schema: () => units.schema().transform((value) => value * UNIT_MS[unit]),
    stated: (ms) => ms / UNIT_MS[unit],
  }
}

/** A number that may have a fraction. */
export function decimal(min: number, max: number): Kind<number> {
  const accepts = `${min} to ${max}`
  const error = `must be a number from ${accepts}`
  const digits = () =>
    z
      .string({ error })
      .regex(/^\d{1,15}(\.\d{1,15})?$/, error)
      .transform(Number)
  return {
    placeholder: 'number',
    accepts,
    schema: () => z.union([z.number(), digits()], { error }).pipe(z.number().min(min, error).max(max, error)),
  }
}

export const port = integer(0, 65_535)

/** A port, or none. */
export const portOrOff: Kind<number | 'off'> = {
  placeholder: 'number|off',
  accepts: `${port.accepts}, or off`,
  words: ['off'],
  schema: () =>
    z.union([z.literal('off'), port.schema()], { error: `must be a whole number from ${port.accepts}, or off` }),
}

export function choice<const T extends string>(...values: readonly T[]): Kind<T> {
  const accepts = values.join(', ')
  return {
    placeholder: 'word',
    accepts,
    words: values,
    schema: () => z.enum(values, { error: `must be one of ${accepts}` }),
  }
}

export const onOff: Kind<boolean> = {
  placeholder: 'on|off',
  accepts: 'on, off',
  words: ['on', 'off'],
  alone: 'on',
  schema: () =>
    z.union([z.boolean(), z.enum(['on', 'off']).transform((word) => word === 'on')], { error: 'must be on or off' }),
}

/** Text that matches `form`; `accepts` describes it and follows "must be". */
export function text(placeholder: string, accepts: string, form: RegExp): Kind<string> {
  const error = `must be ${accepts}`
  return { placeholder, accepts, schema: () => z.string({ error }).regex(form, error) }
}

const HOST = /^(?:[A-Za-z0-9._:%-]+|\[[0-9A-Fa-f:.%]+\])$/

/** A host name or address; an IPv6 address also in the brackets that it has in URLs. */
export const host: Kind<string> = {
  ...text('host', 'a host name or address', HOST),
  schema: () =>
    z
      .string({ error: 'must be a host name or address' })
      .regex(HOST, 'must be a host name or address')
      .transform((value) => value.replace(/^\[|\]$/g, '')),
}

export const path = text('path', 'a path', /^[^\0]+$/)

/** The path of a file, which a config file names relative to itself. */
export const nearbyFile: Kind<string> = {
  ...text('path', 'a path; in the config file relative to it', /^[^\0]+$/),
  locate: (value, folder) => resolve(folder, value),
}

/** A URL with one of these schemes. Only URLs of databases and network nodes may contain secrets. */
export function url(...schemes: readonly string[]): Kind<string> {
  const accepts = schemes.map((scheme) => `${scheme}://…`).join(', ')
  const error = `must be a URL: ${accepts}`
  const fits = (value: string) => URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1))
  return { placeholder: 'url', accepts, schema: () => z.string({ error }).refine(fits, error) }
}

/** The URL of an HTTP server with an optional path, without user, query and fragment. */
export function httpUrl(): Kind<string> {
  const kind = url('http', 'https')
  const isAddress = (value: string) => {
    const { username, password, search, hash } = new URL(value)
    return username + password + search + hash === ''
  }
  const error = 'must be an address without user, query and fragment'
  return { ...kind, schema: () => kind.schema().refine((value) => !URL.canParse(value) || isAddress(value), error) }
}

/** Scheme and host of an HTTP server. */
export function origin(): Kind<string> {
  const kind = httpUrl()
  const error = 'must be scheme and host alone'
  const isOrigin = (value: string) => !URL.canParse(value) || new URL(value).pathname === '/'
  return { ...kind, schema: () => kind.schema().refine(isOrigin, error) }
}

/** Several values of one kind: a repeated flag, a comma-separated variable, an array in the file. */
export function list<T>(kind: Kind<T>): Kind<readonly T[]> {
  const split = () => z.string().transform((value) => value.split(','))
  const locate = kind.locate?.bind(kind)
  const schema = () =>
    z.union([z.array(z.unknown()), split()], { error: 'must be a list' }).pipe(z.array(kind.schema()))
  return {
    placeholder: kind.placeholder,
    accepts: kind.accepts,
    ...(kind.words ? { words: kind.words } : {}),
    schema: schema as () => z.ZodType<readonly T[]>,
    repeatable: true,
    ...(locate && { locate: (values: readonly T[], folder: string) => values.map((value) => locate(value, folder)) }),
  }
}

/** Text that `read` checks. It throws an Error whose message follows "is not valid:". */
export function checkedText(placeholder: string, accepts: string, read: (value: string) => unknown): Kind<string> {
  const schema = () =>
    z.string({ error: `must be ${accepts}` }).superRefine((value, context) => {
      try {
        read(value)
      } catch (error) {
        context.addIssue({ code: 'custom', message: `is not valid: ${(error as Error).message}` })
      }
    })
  return { placeholder, accepts, schema }
}

/** One of the words, or a path; a folder of that name is `./<word>`. */
export function wordOrPath(...words: readonly string[]): Kind<string> {
  const accepts = `${words.join(', ')}, or a path`
  return {
    placeholder: 'place',
    accepts,
    words,
    schema: () => z.string({ error: `must be ${accepts}` }).regex(/^[^\0]+$/, `must be ${accepts}`),
    locate: (value, folder) => (words.includes(value) ? value : resolve(folder, value)),
  }
}

/** A rate per second, and optionally the burst, which is as much as one second allows otherwise. */
export function rate(max: number): Kind<Rate> {
  const error = `must be a number per second, or such a number, / and a burst: 0.001 to ${max}, 1 to ${max}`
  const form = /^(\d{1,15}(?:\.\d{1,3})?)(?:\/(\d{1,15}))?$/
  const schema = () =>
    z
      .union([z.number(), z.string()], { error })
      .transform((value) => form.exec(String(value))?.slice(1) ?? [])
      .transform(([perSecond, burst]) => ({
        perSecond: Number(perSecond),
        burst: Number(burst ?? Math.max(1, Number(perSecond))),
      }))
      .refine(({ perSecond, burst }) => perSecond >= 0.001 && perSecond <= max && burst >= 1 && burst <= max, error)
  return { placeholder: 'rate[/burst]', accepts: `0.001 to ${max}, burst 1 to ${max}`, schema }
}

const PLUGIN_ERROR = 'must be names or paths of plugins, or none'
const pluginEntry = () =>
  z.strictObject(
    {
      use: z.string({ error: PLUGIN_ERROR }).min(1, PLUGIN_ERROR),
      options: z.record(z.string(), z.unknown(), { error: '"options" of a plugin must be an object' }).optional(),
    },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys' ? 'has entries with other members than "use" and "options"' : PLUGIN_ERROR,
    },
  )
const pluginUse: Kind<PluginUse> = {
  placeholder: 'name|path',
  accepts: 'a name or path, or none',
  schema: () =>
    z
      .unknown()
      .transform((value) => (typeof value === 'string' ? { use: value } : value))
      .pipe(pluginEntry())
      .transform((read) => ({ ...read, from: '.' })),
}

/** Plugins to run, by name or with options; a single `none` is the empty list. */
export const pluginUses: Kind<readonly PluginUse[]> = {
  ...list(pluginUse),
  schema: () =>
    list(pluginUse)
      .schema()
      .transform((uses) => (uses.length === 1 && uses[0]?.use === 'none' ? [] : uses)),
  locate: (uses, folder) => uses.map((one) => ({ ...one, from: folder })),
}
