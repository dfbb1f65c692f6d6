import { Columns } from '../../columns.js'
import { type Database, tableOf } from '../../store/database.js'
import { addressOfMiner, parseFil } from '../fil.js'
import { NetworkError, type ProviderChange } from '../network.js'
import type { ProviderTerms } from './catalogue.js'

export const providerSchema = `
  CREATE TABLE IF NOT EXISTS providers (
    miner_id TEXT PRIMARY KEY,
    location TEXT NOT NULL,
    price TEXT NOT NULL,
    verified_price TEXT NOT NULL,
    min_piece_size INTEGER NOT NULL,
    max_piece_size INTEGER NOT NULL,
    offline_deal_available INTEGER NOT NULL,
    score INTEGER NOT NULL,
    contact_info TEXT NOT NULL,
    accept_epochs INTEGER NOT NULL,
    publish_epochs INTEGER NOT NULL,
    seal_epochs INTEGER NOT NULL
  ) STRICT;
`

const TERMS = new Columns<ProviderTerms>({ offlineDealAvailable: 'flag' })

const ADDED = [
  ...([
    'minerId',
    'location',
    'price',
    'verifiedPrice',
    'minPieceSize',
    'maxPieceSize',
    'offlineDealAvailable',
  ] as const),
  ...(['score', 'contactInfo', 'acceptEpochs', 'publishEpochs', 'sealEpochs'] as const),
]

/** The table of providers. Call writing methods inside a transaction. */
export class ProviderTable extends tableOf({
  all: 'SELECT * FROM providers ORDER BY miner_id',
  add: `${TERMS.insert('providers', ADDED)} ON CONFLICT (miner_id) DO NOTHING`,
  change: `
    UPDATE providers
    SET location = coalesce(?, location), offline_deal_available = coalesce(?, offline_deal_available),
      price = coalesce(?, price), verified_price = coalesce(?, verified_price),
      min_piece_size = coalesce(?, min_piece_size), max_piece_size = coalesce(?, max_piece_size)
    WHERE miner_id = ? RETURNING *
  `,
}) {
  async all(): Promise<ProviderTerms[]> {
    return (await this.sql.all.all()).map((row) => TERMS.read(row))
  }

  /** @param minerId of a client, perhaps a text that no database takes */
  async find(minerId: string): Promise<ProviderTerms | undefined> {
    return (await this.all()).find((one) => one.minerId === minerId)
  }

  async addMissing(providers: readonly ProviderTerms[]): Promise<void> {
    for (const provider of providers) await this.sql.add.run(...TERMS.values(provider, ADDED))
  }

  /** Throws NetworkError NoSuchProvider, and TermsRefused for wrong terms, which takes the change back. */
  async change(minerId: string, change: ProviderChange): Promise<void> {
    if ((await this.find(minerId)) === undefined) {
      throw new NetworkError('NoSuchProvider', `There is no storage provider "${minerId}" in this network.`)
    }
    const { location, offlineDealAvailable, price, verifiedPrice, minPieceSize, maxPieceSize } = change
    const offline = offlineDealAvailable === undefined ? null : Number(offlineDealAvailable)
    const sizes = [minPieceSize ?? null, maxPieceSize ?? null]
    const texts = [price ?? null, verifiedPrice ?? null]
    const row = await this.sql.change.get(location ?? null, offline, ...texts, ...sizes, minerId)
    if (row !== undefined) checkChanged(TERMS.read(row))
  }
}

/**
 * The providers of the network: those of its first start, with the terms they had then or were given since, and those
 * that later lists add. Rejects with RangeError when terms are invalid.
 */
export async function addProviders(
  db: Database<{ readonly providers: ProviderTable }>,
  catalogue: readonly ProviderTerms[],
): Promise<void> {
  catalogue.forEach(check)
  await db.transaction(({ providers }) => providers.addMissing(catalogue))
}

/** Throws NetworkError TermsRefused. */
function checkChanged(provider: ProviderTerms): void {
  try {
    check(provider)
  } catch (error) {
    if (error instanceof RangeError) throw new NetworkError('TermsRefused', error.message)
    throw error
  }
}

function check(provider: ProviderTerms): void {
  // This check also makes the id safe as the name of a folder.
  addressOfMiner(provider.minerId)
  const wrong = (what: string): RangeError => new RangeError(`Provider ${provider.minerId}: ${what}.`)
  if (parseFil(provider.price) === undefined) throw wrong('its price must be a decimal number')
  if (provider.verifiedPrice !== '' && parseFil(provider.verifiedPrice) === undefined) {
    throw wrong('its price for verified deals must be a decimal number or empty')
  }
  if (!(provider.minPieceSize <= provider.maxPieceSize))
    throw wrong('its smallest piece must not be larger than its largest')
  for (const epochs of [provider.acceptEpochs, provider.publishEpochs, provider.sealEpochs]) {
    if (!Number.isSafeInteger(epochs) || epochs < 1)
      throw wrong('each step of a deal must take a whole number of epochs above 0')
  }
}
