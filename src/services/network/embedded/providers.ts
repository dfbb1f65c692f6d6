import { Columns } from '../../columns.js'
import type { Database, Writer } from '../../database.js'
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

/**
 * The providers of the network: those of its first start, with the terms they had then or were given since, and those
 * that later lists add.
 */
export class Providers {
  readonly #byId: Map<string, ProviderTerms>
  readonly #change

  /** @param db has `providerSchema`. Throws RangeError when terms are invalid. */
  constructor(db: Database, catalogue: readonly ProviderTerms[]) {
    const add = db.prepare(TERMS.insert('providers', ADDED).replace('INSERT', 'INSERT OR IGNORE'))
    for (const provider of catalogue) {
      check(provider)
      add.run(...TERMS.values(provider, ADDED))
    }
    this.#change = db.prepare(`
      UPDATE providers
      SET location = coalesce(?, location), offline_deal_available = coalesce(?, offline_deal_available),
        price = coalesce(?, price), verified_price = coalesce(?, verified_price),
        min_piece_size = coalesce(?, min_piece_size), max_piece_size = coalesce(?, max_piece_size)
      WHERE miner_id = ? RETURNING *
    `)
    const rows = db.prepare('SELECT * FROM providers ORDER BY rowid').all()
    this.#byId = new Map(rows.map((row) => [row.miner_id as string, TERMS.read(row)]))
  }

  all(): ProviderTerms[] {
    return [...this.#byId.values()]
  }

  find(minerId: string): ProviderTerms | undefined {
    return this.#byId.get(minerId)
  }

  /** Durable when the promise resolves. Rejects with NetworkError NoSuchProvider, and TermsRefused for wrong terms. */
  async change(writer: Writer, minerId: string, change: ProviderChange): Promise<void> {
    if (!this.#byId.has(minerId)) {
      throw new NetworkError('NoSuchProvider', `There is no storage provider "${minerId}" in this network.`)
    }
    const { location, offlineDealAvailable, price, verifiedPrice, minPieceSize, maxPieceSize } = change
    const offline = offlineDealAvailable === undefined ? null : Number(offlineDealAvailable)
    const sizes = [minPieceSize ?? null, maxPieceSize ?? null]
    const after = await writer.run(() => {
      // The row has the changes of other calls that are committed together with this one.
      const row = this.#change.get(location ?? null, offline, price ?? null, verifiedPrice ?? null, ...sizes, minerId)
      return checked(TERMS.read(row))
    })
    this.#byId.set(minerId, after)
  }
}

/** Throws NetworkError TermsRefused, which takes the change back. */
function checked(provider: ProviderTerms): ProviderTerms {
  try {
    check(provider)
    return provider
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
