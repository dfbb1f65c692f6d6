import { z } from 'zod'

/** Half of a surrogate pair cannot be encoded: it would silently name another key. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** A text; absent and null are the empty one, as in Go's decoder. */
export const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '')
  .refine((value) => !LONE_SURROGATE.test(value), 'must be well-formed Unicode')

/** A text that is left out on purpose or given on purpose, also as ''. */
export const optionalText = z
  .string()
  .optional()
  .refine((value) => value === undefined || !LONE_SURROGATE.test(value), 'must be well-formed Unicode')

export const texts = z
  .array(text)
  .nullish()
  .transform((value) => value ?? [])
