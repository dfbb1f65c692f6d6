import { z } from 'zod'

/** Address of a wallet. */
export const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be 0x and 40 hexadecimal digits')
  .describe('0x and 40 hexadecimal digits.')
