import { z } from 'zod'

/** One half of a surrogate pair cannot be encoded: it would silently name another key. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** A string. Absent and null count as '', as in Go's decoder. */
export const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '')
  .refine((value) => !LONE_SURROGATE.test(value), 'must be well-formed Unicode')

/** A string whose absence differs from ''. */
export const optionalText = z
  .string()
  .optional()
  .refine((value) => value === undefined || !LONE_SURROGATE.test(value), 'must be well-formed Unicode')

export const texts = z
  .array(text)
  .nullish()
  .transform((value) => value ?? [])
