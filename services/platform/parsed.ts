import type { z } from 'zod'
import { HttpError } from '../http/errors.js'

/** Reads a part of a request by its schema. Throws HttpError 400 with the message of the first wrong member. */
export function parsed<S extends z.ZodType>(schema: S | undefined, value: unknown): z.output<S> {
  if (schema === undefined) return {} as z.output<S>
  const { data, error } = schema.safeParse(value)
  if (error) throw new HttpError(400, error.issues[0]?.message ?? 'The request is not valid.')
  return data as z.output<S>
}
