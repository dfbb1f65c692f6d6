import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { openBeside } from '../folder-lock.js'
import { silentLog } from '../log.js'
import { PinTable } from '../network/kubo/pins.js'
import { type Connection, type Database, randomSetting, type Schema, Settings } from '../store/database.js'
import { openStore } from '../store/open.js'
import { addressOfKey, signText } from './addresses.js'
import { BillTable } from './bills.js'
import { ChainTable, chainSchema } from './chain/chain-table.js'
import { PaidUploads } from './chain/effects.js'
import {
  ContentTable,
  carFileSchema,
  contentSchema,
  directorySchema,
  retentionSchema,
} from './contents/content-table.js'
import { CopyTable, kuboSchema, UNNEEDED } from './contents/node-copies.js'
import { RetentionTable } from './contents/retention.js'
import { CarTable, dealingSchema, triedSchema } from './dealing/car-folder.js'
import { DealTable, dealSchema } from './dealing/deal-table.js'
import { PackedUploads } from './dealing/packed-uploads.js'
import { EmbeddedPayments } from './embedded-payments.js'
import { exactLockSchema, Ledger, LockTable, ledgerSchema } from './ledger.js'
import { Progress } from './scheduler.js'
import { freeSchema, idempotencySchema, MintTable, UploadTable, uploadSchema } from './uploads/upload-table.js'
import { signInSchema, UsedNonces, Wallets, walletSchema } from './wallets.js'

/** The tables of the service, over one connection. */
export type PaymentTables = ReturnType<typeof paymentSchema.tables>

export const paymentSchema = {
  owner: 'the storage payment service',
  name: 'payment',
  /** A released step never changes: test/services/services.test.ts has their hashes. */
  steps: [
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
    carFileSchema,
  ],
  tables: (connection: Connection) => ({
    settings: new Settings(connection),
    wallets: new Wallets(connection),
    usedNonces: new UsedNonces(connection),
    ledger: new Ledger(connection),
    locks: new LockTable(connection),
    bills: new BillTable(connection),
    contents: new ContentTable(connection),
    retention: new RetentionTable(connection),
    copies: new CopyTable(connection),
    pins: new PinTable(connection, UNNEEDED),
    uploads: new UploadTable(connection),
    mints: new MintTable(connection),
    progress: new Progress(connection),
    cars: new CarTable(connection),
    packed: new PackedUploads(connection),
    deals: new DealTable(connection),
    chain: new ChainTable(connection),
    paid: new PaidUploads(connection),
  }),
} satisfies Schema<unknown>

/** A wallet whose key stays here. */
interface OwnWallet {
  /** In lower case. */
  readonly address: string
  /** Signs as `personal_sign` does. */
  sign(text: string): string
}

/**
 * The coins of wallets in a data folder, for a program beside the storage payment service: it may run or not, and
 * follows every change at once. Amounts are in millionths of a stable coin, addresses in lower case.
 */
export interface WalletRegistry {
  balance(address: string): Promise<bigint>
  /**
   * Gives a wallet coins. Rejects with DatabaseUnavailableError when it is unknown whether it has: repeat it with the
   * same reference then.
   * @param reference by which a repetition is known, for the same address and amount; default: a new one
   */
  fund(address: string, amount: bigint, reference?: string): Promise<void>
  /** The wallet that the service keeps for the owner of the server, made at the first call: always the same. */
  ofOwner(): Promise<OwnWallet>
  /** Sums of all balances and of all entries of the ledger: both are 0. */
  sums(): ReturnType<EmbeddedPayments['sums']>
  close(): Promise<void>
}

/** True when the data folder of the services has a storage payment service. */
export function hasWallets(data: string): boolean {
  return existsSync(fileIn(data))
}

/**
 * Opens the wallets in the data folder of the services, which must have a storage payment service.
 * @param database URL of the PostgreSQL database that the service uses instead of SQLite
 * @throws DataFolderError when a file or folder cannot be used; RangeError when the service has never started, or
 * payments are made on a chain
 */
export async function openWalletRegistry(data: string, database?: string): Promise<WalletRegistry> {
  const open = () => openStore({ ...paymentSchema, exclusive: false }, { file: fileIn(data), database }, silentLog)
  const db = await (database === undefined ? openBeside(data, open) : open())
  try {
    return await registryOf(db)
  } catch (error) {
    await db.close()
    throw error
  }
}

function fileIn(data: string): string {
  return join(data, 'payment', 'payment.db')
}

async function registryOf(db: Database<PaymentTables>): Promise<WalletRegistry> {
  const id = await db.read.settings.find('id')
  if (id === undefined) throw new RangeError('The storage payment service has never started: start it once.')
  if ((await db.read.chain.state()) !== undefined) {
    throw new RangeError('Payments are made on a chain: the coins of wallets are there.')
  }
  const payments = new EmbeddedPayments(db, Buffer.from(id).toString('hex'))
  return {
    balance: (address) => payments.balance(address),
    fund: (address, amount, reference = randomUUID()) =>
      payments.fundSurely(address, amount, `${reference} ${address} ${amount}`, Math.floor(Date.now() / 1000)),
    async ofOwner() {
      const key = await randomSetting(db, 'owner-wallet')
      return { address: addressOfKey(secp256k1.getPublicKey(key, false)), sign: (text) => signText(text, key) }
    },
    sums: () => payments.sums(),
    close: () => db.close(),
  }
}
