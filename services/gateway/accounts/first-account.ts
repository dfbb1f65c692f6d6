import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readIfExists } from '../../../common/files/private-file.js'
import { type Clock, rfc3339 } from '../../clock.js'
import type { PlatformUser } from '../../platform/users.js'
import type { Database } from '../../store/database.js'
import type { GatewayContext } from '../context.js'
import { type Account, type Accounts, FIRST } from './accounts.js'
import { checkChosenPair, type KeyPair, newPair } from './key-pair.js'

/** The file in which earlier versions kept the only account. */
const FORMER_FILE = 'account.json'

const former = z.object({ accessKey: z.string(), secretKey: z.string(), configured: z.string().nullable() })

/**
 * Makes the first account if it does not exist: with the pair of an earlier version, else the configured one, else a
 * new one (`made`). A pair that the configuration names for the first time replaces the current one; after that, a
 * changed pair stands until the configuration names another. Durable on return; a crash at any point leaves the old
 * keys or the new ones. Throws RangeError for a configured pair that is not valid or that another account has.
 */
export async function openFirstAccount(
  db: Database<{ readonly accounts: Accounts }>,
  folder: string,
  configured: KeyPair | undefined,
  clock: Clock,
): Promise<{ made: boolean }> {
  if (configured !== undefined) checkChosenPair(configured)
  const file = join(folder, FORMER_FILE)
  const isNew = (await db.read.accounts.first()) === undefined
  const kept = isNew ? readFormer(file) : undefined
  const made = await db.transaction(async ({ accounts }) => {
    const isFirst = (await accounts.first()) === undefined
    if (isFirst) await begin(accounts, kept, configured, clock)
    if (configured !== undefined && digestOf(configured) !== (await accounts.configured())) {
      await configure(accounts, configured)
    }
    return isFirst && kept === undefined && configured === undefined
  })
  // The table has its content by now.
  rmSync(file, { force: true })
  return { made }
}

async function begin(
  accounts: Accounts,
  kept: z.infer<typeof former> | undefined,
  configured: KeyPair | undefined,
  clock: Clock,
): Promise<void> {
  const pair = kept ?? configured ?? newPair()
  await mustBeFree(accounts, pair)
  await accounts.add({ ...pair, name: 'owner' }, rfc3339(clock.now()), FIRST)
  await accounts.setConfigured(kept === undefined ? null : kept.configured)
}

async function configure(accounts: Accounts, configured: KeyPair): Promise<void> {
  await mustBeFree(accounts, configured)
  await accounts.rotate(FIRST, (await accounts.first()) as Account, configured)
  await accounts.setConfigured(digestOf(configured))
}

async function mustBeFree(accounts: Accounts, { accessKey }: KeyPair): Promise<void> {
  const other = await accounts.find(accessKey)
  if (other === undefined || other.id === FIRST) return
  throw new RangeError(
    `The access key ${accessKey} of the gateway belongs to another account of the data folder: choose another one.`,
  )
}

function readFormer(file: string): z.infer<typeof former> | undefined {
  const text = readIfExists(file)
  if (text === undefined) return undefined
  try {
    return former.parse(JSON.parse(text))
  } catch {
    // The parser's message would quote the text, and with it the secret.
    throw new Error(`${file} is not an account file. Restore it, or remove it to have a new key pair made.`)
  }
}

/**
 * Finds the account of a user of the task platform, or makes one; the same user always gets the same account. The first
 * user gets the first account, because both are the owner's. Durable on return. The caller must have authenticated the
 * user.
 */
export function accountOfUser(
  { db, clock }: Pick<GatewayContext, 'db' | 'clock'>,
  { id, name, isFirst }: PlatformUser,
): Promise<Account> {
  return db.transaction(
    async ({ accounts }) =>
      (await (isFirst ? accounts.first() : accounts.ofUser(id))) ??
      (await accounts.add({ ...newPair(), name, user: id }, rfc3339(clock.now()))),
  )
}

/** Digest that tells a configured pair from another one; hex. */
function digestOf({ accessKey, secretKey }: KeyPair): string {
  return createHash('sha256')
    .update(JSON.stringify([accessKey, secretKey]))
    .digest('hex')
}
