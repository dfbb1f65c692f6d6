import type { Database } from '../../database.js'
import { applySteps } from '../../store/apply-steps.js'
import { chainSchema } from '../chain/schema.js'
import { contentSchema, directorySchema, retentionSchema } from '../contents/schema.js'
import { dealingSchema, triedSchema } from '../dealing/schema.js'
import { dealSchema } from '../deals/schema.js'
import { kuboSchema } from '../kubo/schema.js'
import { exactLockSchema, ledgerSchema } from '../ledger/schema.js'
import { freeSchema, uploadSchema } from '../uploads/schema.js'
import { signInSchema, walletSchema } from '../wallets/schema.js'

const steps: readonly string[] = [
  walletSchema,
  ledgerSchema,
  contentSchema,
  uploadSchema,
  dealSchema,
  dealingSchema,
  retentionSchema,
  chainSchema,
  signInSchema,
  triedSchema,
  directorySchema,
  kuboSchema,
  freeSchema,
  exactLockSchema,
]

/** Brings the schema up to date, or makes it. Throws as `applySteps` does. */
export function migrate(db: Database): void {
  applySteps(db, steps, 'the storage payment service')
}
