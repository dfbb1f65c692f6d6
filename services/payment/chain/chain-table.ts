import { tableOf } from '../../store/database.js'
import type { LogPosition } from './abi.js'

/** Most blocks whose hashes are remembered besides those of blocks with logs. */
const MAX_BLOCKS = 1000

/** The chain and the contract that a folder follows; addresses in lower case. */
interface ChainIdentity {
  readonly chainId: number
  readonly contract: string
  readonly token: string
}

interface ChainState extends ChainIdentity {
  readonly tokenName: string | null
  /** Decimals of the token; null before the chain was read. */
  readonly decimals: number | null
  /** First block whose logs count; null before the chain was read. */
  readonly firstBlock: number | null
  readonly lastBlock: number | null
}

export interface ChainLog extends Omit<LogPosition, 'index'> {
  readonly position: number
  readonly kind: 'lock' | 'unlock' | 'refund'
  readonly wCid: string
  readonly amount: bigint
  /** Unix seconds of the block. */
  readonly time: number
  /** `counted`, or why it does not count. */
  readonly outcome: string
  /** Earlier status of the upload; null when the log changed none. */
  readonly formerStatus: string | null
}

export interface KnownBlock {
  readonly number: number
  readonly hash: string
}

const LOG = `block, position, block_hash AS "blockHash", hash, kind, w_cid AS "wCid", amount, time, outcome,
  former_status AS "formerStatus" FROM chain_logs`

/** What is known of the chain. Call writing methods inside a transaction. */
export class ChainTable extends tableOf({
  state: `SELECT chain_id AS "chainId", contract, token, token_name AS "tokenName", decimals, first_block AS "firstBlock",
    last_block AS "lastBlock" FROM chain`,
  begin: 'INSERT INTO chain (id, chain_id, contract, token) VALUES (1, ?, ?, ?)',
  setFirst: 'UPDATE chain SET first_block = ?, last_block = ?',
  setCoin: 'UPDATE chain SET decimals = ?, token_name = coalesce(?, token_name)',
  setLast: 'UPDATE chain SET last_block = ?',
  known: `SELECT number, hash FROM chain_blocks UNION SELECT block, block_hash FROM chain_logs ORDER BY 1 LIMIT 1 OFFSET ?`,
  count: 'SELECT count(*) AS count FROM (SELECT number FROM chain_blocks UNION SELECT block FROM chain_logs) AS known',
  block:
    'SELECT number, hash FROM chain_blocks WHERE number = ?1 UNION SELECT block, block_hash FROM chain_logs WHERE block = ?1',
  refused: "SELECT count(*) AS count FROM chain_logs WHERE w_cid = ? AND outcome <> 'counted'",
  note: 'INSERT INTO chain_blocks (number, hash) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET hash = excluded.hash',
  prune: `DELETE FROM chain_blocks WHERE number <= (SELECT number FROM chain_blocks ORDER BY number DESC LIMIT 1 OFFSET ${MAX_BLOCKS})`,
  forgetBlocks: 'DELETE FROM chain_blocks WHERE number > ?',
  addLog:
    'INSERT INTO chain_logs (block, position, block_hash, hash, kind, w_cid, amount, time, outcome, former_status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  above: `SELECT ${LOG} WHERE block > ? ORDER BY block DESC, position DESC`,
  removeAbove: 'DELETE FROM chain_logs WHERE block > ?',
  ofUpload: `SELECT ${LOG} WHERE w_cid = ? ORDER BY block, position`,
}) {
  /** Undefined while the folder follows no chain. */
  state(): Promise<ChainState | undefined> {
    return this.sql.state.get<ChainState>()
  }

  async begin({ chainId, contract, token }: ChainIdentity): Promise<void> {
    await this.sql.begin.run(chainId, contract, token)
  }

  async setFirstBlock(number: number): Promise<void> {
    await this.sql.setFirst.run(number, number - 1)
  }

  async setCoin({
    decimals,
    symbol,
  }: {
    readonly decimals: number
    readonly symbol: string | undefined
  }): Promise<void> {
    await this.sql.setCoin.run(decimals, symbol ?? null)
  }

  async countKnown(): Promise<number> {
    return (await this.sql.count.get<{ count: number }>())?.count ?? 0
  }

  /** A block whose hash is known, by its place in their order, from 0. */
  knownAt(place: number): Promise<KnownBlock | undefined> {
    return this.sql.known.get<KnownBlock>(place)
  }

  block(number: number): Promise<KnownBlock | undefined> {
    return this.sql.block.get<KnownBlock>(number)
  }

  async countRefused(wCid: string): Promise<number> {
    return (await this.sql.refused.get<{ count: number }>(wCid))?.count ?? 0
  }

  async setLastBlock({ number, hash }: KnownBlock): Promise<void> {
    await this.sql.setLast.run(number)
    await this.sql.note.run(number, hash)
    await this.sql.prune.run()
  }

  async goBackTo(number: number): Promise<void> {
    await this.sql.setLast.run(number)
    await this.sql.forgetBlocks.run(number)
    await this.sql.removeAbove.run(number)
  }

  async addLog(log: ChainLog): Promise<void> {
    const { block, position, blockHash, hash, kind, wCid, amount, time, outcome, formerStatus } = log
    const values = [block, position, blockHash, hash, kind, wCid, String(amount), time, outcome, formerStatus]
    await this.sql.addLog.run(...values)
  }

  /** Logs above a block, the last one first. */
  async logsAbove(number: number): Promise<ChainLog[]> {
    return (await this.sql.above.all<StoredLog>(number)).map(logOf)
  }

  async logsOf(wCid: string): Promise<ChainLog[]> {
    return (await this.sql.ofUpload.all<StoredLog>(wCid)).map(logOf)
  }
}

type StoredLog = Omit<ChainLog, 'amount'> & { readonly amount: string }

function logOf(log: StoredLog): ChainLog {
  return { ...log, amount: BigInt(log.amount) }
}

/**
 * The chain on which payments are made: which one, the first block that counts, and the last one
 * that was read. `chain_blocks` has the hashes of
 * blocks at which reading stopped, by which a reorganisation is noticed. `chain_logs` has the logs of the contract
 * about uploads, what became of each (`counted`, or why it does not count), and what is needed to take it back:
 * the status that its upload had. Amounts are decimal texts, in the smallest units of the token; times are Unix
 * seconds.
 */
export const chainSchema = `
  CREATE TABLE chain (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    chain_id INTEGER NOT NULL,
    contract TEXT NOT NULL,
    token TEXT NOT NULL,
    token_name TEXT,
    first_block INTEGER,
    last_block INTEGER
  ) STRICT;
  CREATE TABLE chain_blocks (
    number INTEGER PRIMARY KEY,
    hash TEXT NOT NULL
  ) STRICT;
  CREATE TABLE chain_logs (
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    block_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    w_cid TEXT NOT NULL,
    amount TEXT NOT NULL,
    time INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    former_status TEXT,
    PRIMARY KEY (block, position)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX chain_logs_of_upload ON chain_logs (w_cid, block, position);
`
