import type { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import { invalidArgument, memberPath } from './names.js'

/** Largest number of problems in one message. */
const MAX_TOLD = 5

/** Parses a value by its schema. Throws InvalidArgument, naming the argument. */
export async function checked<T>(schema: z.ZodType<T>, value: unknown): Promise<T> {
  const result = await schema.safeParseAsync(value)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => ({ name: nameOf(path), message }))
  const [first] = problems
  const name = first?.name ?? ''
  if (problems.length === 1)
    throw invalidArgument(name, said(first?.message ?? ''), valueAt(value, result.error.issues[0]))
  const told = problems.slice(0, MAX_TOLD).map((one) => `${one.name || 'The document'}: ${one.message}`)
  throw new S3Error('InvalidArgument', { message: `${told.join('; ')}.`, fields: { ArgumentName: name } })
}

/** Messages of plugins continue the name ("must be ..."); those of zod are whole sentences. */
function said(message: string): string {
  return /^[a-z]/.test(message) ? message : `is not valid: ${message}`
}

function nameOf(path: readonly PropertyKey[]): string {
  let name = ''
  for (const step of path) name = typeof step === 'number' ? `${name}[${step}]` : memberPath(name, String(step))
  return name
}

function valueAt(value: unknown, issue: { readonly path: readonly PropertyKey[] } | undefined): unknown {
  let at = value
  for (const step of issue?.path ?? []) at = (at as Record<PropertyKey, unknown> | undefined | null)?.[step]
  return at
}
