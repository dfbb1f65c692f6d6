import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { applySteps, type Database, openDatabase, Writer } from '../database.js'
import { openBeside } from '../folder-lock.js'
import { ChainTable, chainSchema } from './chain/chain-table.js'
import { contentSchema, directorySchema, retentionSchema } from './contents/content-table.js'
import { kuboSchema } from './contents/node-copies.js'
import { dealingSchema, triedSchema } from './dealing/car-folder.js'
import { dealSchema } from './dealing/deal-table.js'
import { EmbeddedPayments } from './embedded-payments.js'
import { exactLockSchema, ledgerSchema } from './ledger.js'
import { freeSchema, idempotencySchema, uploadSchema } from './uploads/upload-table.js'
import { signInSchema, walletSchema } from './wallets.js'

/** A released step never changes: test/services/services.test.ts has their hashes. */
export const steps: readonly string[] = [
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
  idempotencySchema,
]

/** Brings the schema up to date, or makes it. Throws as `applySteps` does. */
export function migrate(db: Database): void {
  applySteps(db, steps, 'the storage payment service')
}

/**
 * The coins of wallets in a data folder, for a program beside the storage payment service: it may run or not, and
 * follows every change at once. Amounts are in millionths of a stable coin, addresses in lower case.
 */
export interface WalletBook {
  balance(address: string): bigint
  fund(address: string, amount: bigint): Promise<void>
  /** Sums of all balances and of all entries of the ledger: both are 0. */
  sums(): ReturnType<EmbeddedPayments['sums']>
  close(): void
}

/** True when the data folder of the services has a storage payment service. */
export function hasWallets(data: string): boolean {
  return existsSync(fileIn(data))
}

/**
 * Opens the wallets in the data folder of the services, which must have a storage payment service.
 * @throws DataFolderError when a file or folder cannot be used; RangeError when the service has never started, or
 * payments are made on a chain
 */
export function openWalletBook(data: string): WalletBook {
  return openBeside(data, () => bookOf(openDatabase(fileIn(data), '', migrate)))
}

function fileIn(data: string): string {
  return join(data, 'payment', 'payment.db')
}

function bookOf(db: Database): WalletBook {
  const id = db.prepare("SELECT value FROM settings WHERE name = 'id'").get()?.value as Uint8Array | undefined
  if (id === undefined) {
    db.close()
    throw new RangeError('The storage payment service has never started: start it once.')
  }
  if (new ChainTable(db).state() !== undefined) {
    db.close()
    throw new RangeError('Payments are made on a chain: the coins of wallets are there.')
  }
  const writer = new Writer(db)
  const payments = new EmbeddedPayments(db, writer, Buffer.from(id).toString('hex'))
  return {
    balance: (address) => payments.balance(address),
    async fund(address, amount) {
      await payments.fund(address, amount, randomUUID(), Math.floor(Date.now() / 1000))
    },
    sums: () => payments.sums(),
    close() {
      writer.close()
      db.close()
    },
  }
}
