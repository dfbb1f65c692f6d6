import { z } from 'zod'

export const days = z
  .number()
  .int()
  .min(0)
  .max(2_000_000)
  .optional()
  .describe('For how many days the bytes stay; 0 or absent: for good.')

export const tier = z.enum(['Standard', 'Bulk', 'Expedited']).optional().describe('How urgent it is; default Standard.')
