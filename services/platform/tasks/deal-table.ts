import type { Document, documents } from '../../../common/service-documents.js'
import { type Connection, statements } from '../../store/database.js'
import type { TaskRow } from '../csv.js'
import { minerNumber } from '../units.js'

/** What the provider's program does with a deal, step by step; it may write other words, too. */
export const DEAL_ACTIVE = 'DealActive'

export const DOWNLOADED = 'Downloaded'

export const READY_FOR_IMPORT = 'ReadyForImport'

export const FILE_IMPORTING = 'FileImporting'

export const FILE_IMPORTED = 'FileImported'

/** States in which the platform, or an embedded provider, goes on by itself an epoch later. */
const GOES_ON: readonly string[] = [DOWNLOADED, READY_FOR_IMPORT, FILE_IMPORTING, FILE_IMPORTED]

/** States in which the provider does not have the CAR yet and shall fetch it. */
export const TO_FETCH: readonly string[] = ['Created', 'Waiting', 'Downloading']

/** True for a state in which the provider has given up. */
export function isFailure(status: string): boolean {
  return status === 'DownloadFailed' || status === 'ImportFailed'
}

/** One deal of a task, and what its task adds to it. */
export interface PlatformDeal {
  readonly id: number
  readonly task: number
  readonly user: number
  /** Null while the task has no provider. */
  readonly minerId: string | null
  readonly dealCid: string | null
  readonly payloadCid: string | null
  readonly pieceCid: string | null
  readonly fileSourceUrl: string
  readonly md5: string | null
  readonly fileSize: number | null
  readonly startEpoch: number | null
  readonly cost: string | null
  readonly status: string
  readonly note: string | null
  readonly filePath: string | null
  /** 1 when the network knows the deal, else 0. */
  readonly sent: number
  readonly created: number
  readonly updated: number
}

/** What a provider writes to its deal. An absent member stays as it is. */
export interface DealUpdate {
  readonly status: string
  readonly note?: string
  readonly filePath?: string
  readonly fileSize?: number
  readonly cost?: string
  /** A deal that the network knows, and the epoch at which it starts. */
  readonly proposal?: { readonly dealCid: string; readonly startEpoch: number }
  /** Epoch at which the program of an embedded provider goes on; default the next one, in states where it does. */
  readonly due?: number
}

const FROM = 'FROM deals JOIN tasks ON tasks.id = deals.task AND tasks.posted = 1'
const COLUMNS = `
  deals.id, deals.task, tasks."user", tasks.miner_id AS "minerId", deals.deal_cid AS "dealCid", deals.payload_cid AS "payloadCid", deals.piece_cid AS "pieceCid",
  deals.file_source_url AS "fileSourceUrl", deals.md5, deals.file_size AS "fileSize", deals.start_epoch AS "startEpoch", deals.cost,
  deals.status, deals.note, deals.file_path AS "filePath", deals.sent, deals.created, deals.updated
`

/** The table of deals. Call writing methods inside a transaction. */
export class DealTable {
  readonly #sql

  constructor(connection: Connection) {
    // In the order of the indexes, and by them alone: a page costs no more than the deals up to its end.
    const ofProvider = (condition: string): string => `
      SELECT ${COLUMNS} ${FROM} WHERE deals.id IN (
      SELECT deals.id FROM tasks CROSS JOIN deals
      WHERE deals.task = tasks.id AND tasks.posted = 1 AND tasks.miner_id = ?1
        AND (?2 = 0 OR tasks."user" = ?2 OR tasks.is_public = 1) ${condition}
      ORDER BY tasks.id, deals.id LIMIT ?3 OFFSET ?4
      ) ORDER BY deals.task, deals.id
    `
    this.#sql = statements(connection, {
      add: `
      INSERT INTO deals (task, deal_cid, payload_cid, piece_cid, source_file_name, file_source_url, md5, file_size, start_epoch, cost, created, updated, sent)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12)
    `,
      byId: `SELECT ${COLUMNS} ${FROM} WHERE deals.id = ?`,
      byCid: `SELECT ${COLUMNS} ${FROM} WHERE deals.deal_cid = ? ORDER BY deals.id`,
      ofTask: `SELECT ${COLUMNS} ${FROM} WHERE deals.task = ? ORDER BY deals.id LIMIT ? OFFSET ?`,
      ofProvider: ofProvider(''),
      ofProviderIn: ofProvider('AND lower(deals.status) = lower(?5)'),
      update: `
      UPDATE deals SET status = ?1, note = coalesce(?2, note), file_path = coalesce(?3, file_path), file_size = coalesce(?4, file_size),
        cost = coalesce(?5, cost), updated = ?6, due = ?7, deal_cid = coalesce(?8, deal_cid), start_epoch = coalesce(?9, start_epoch),
        sent = CASE WHEN ?8 IS NULL THEN sent ELSE 1 END
      WHERE id = ?10
    `,
      anyDue: `SELECT 1 FROM deals WHERE due IS NOT NULL AND status = '${DOWNLOADED}' AND due <= ? LIMIT 1`,
      move: `
      UPDATE deals SET status = '${READY_FOR_IMPORT}', updated = ?1, due = ?2 + 1
      WHERE id IN (SELECT id FROM deals WHERE due IS NOT NULL AND status = '${DOWNLOADED}' AND due <= ?2 ORDER BY due LIMIT ?3)
    `,
    })
  }

  /**
   * @param now Unix seconds
   * @param sent whether the network knows the deal
   */
  async add(task: number, row: TaskRow, now: number, sent: boolean): Promise<void> {
    await this.#sql.add.run(
      task,
      row.dealCid ?? null,
      row.payloadCid ?? null,
      row.pieceCid ?? null,
      row.sourceFileName ?? null,
      row.fileSourceUrl,
      row.md5 ?? null,
      row.fileSize ?? null,
      row.startEpoch ?? null,
      row.cost ?? null,
      now,
      sent ? 1 : 0,
    )
  }

  find(id: number): Promise<PlatformDeal | undefined> {
    return this.#sql.byId.get<PlatformDeal>(id)
  }

  /** The deals with this CID: several tasks may name one deal. */
  findByCid(dealCid: string): Promise<PlatformDeal[]> {
    return this.#sql.byCid.all<PlatformDeal>(dealCid)
  }

  ofTask(task: number, limit: number, offset: number): Promise<PlatformDeal[]> {
    return this.#sql.ofTask.all<PlatformDeal>(task, limit, offset)
  }

  /**
   * @param reader only the deals of this user's tasks and of public ones; undefined for all
   * @param status in any case; undefined for all
   */
  ofProvider(
    minerId: string,
    reader: number | undefined,
    status: string | undefined,
    { limit, offset }: { readonly limit: number; readonly offset: number },
  ): Promise<PlatformDeal[]> {
    const values = [minerId, reader ?? 0, limit, offset]
    return status === undefined
      ? this.#sql.ofProvider.all<PlatformDeal>(...values)
      : this.#sql.ofProviderIn.all<PlatformDeal>(...values, status)
  }

  /**
   * @param now Unix seconds
   * @param epoch the current one
   */
  async update(id: number, update: DealUpdate, now: number, epoch: number): Promise<void> {
    const { status, note, filePath, fileSize, cost, proposal } = update
    const due = GOES_ON.includes(status) ? (update.due ?? epoch + 1) : null
    await this.#sql.update.run(
      status,
      note ?? null,
      filePath ?? null,
      fileSize ?? null,
      cost ?? null,
      now,
      due,
      proposal?.dealCid ?? null,
      proposal?.startEpoch ?? null,
      id,
    )
  }

  async anyDue(epoch: number): Promise<boolean> {
    return (await this.#sql.anyDue.get(epoch)) !== undefined
  }

  /** Lets providers import what they downloaded, for the deals that are due by then. Returns the number of deals. */
  makeReady(epoch: number, now: number, most: number): Promise<number> {
    return this.#sql.move.run(now, epoch, most)
  }
}

/**
 * A platform deal as the interface shows it.
 * @param toParty false for readers who are neither the poster nor the provider: they do not see where the CAR is
 */
export function dealView(deal: PlatformDeal, toParty: boolean): Document<typeof documents.platformDeal> {
  return {
    created_at: String(deal.created),
    deal_cid: deal.dealCid,
    file_path: deal.filePath,
    file_source_url: toParty ? deal.fileSourceUrl : '',
    id: deal.id,
    md5_origin: deal.md5,
    miner_id: deal.minerId === null ? null : minerNumber(deal.minerId),
    note: deal.note,
    start_epoch: deal.startEpoch,
    status: deal.status,
    task_id: deal.task,
    updated_at: String(deal.updated),
    user_id: deal.user,
  }
}
