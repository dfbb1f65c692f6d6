import { join } from 'node:path'
import type { Database, Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { Network } from '../../network/network.js'
import { BidTable } from '../bids/bid-table.js'
import { DealTable } from '../deals/deal-table.js'
import { deliveryOf, type MailOptions } from '../mail/delivery.js'
import { MailTable } from '../mail/mail-table.js'
import { Mailer } from '../mail/mailer.js'
import type { Miners } from '../miners/miners.js'
import { Mover } from '../movement/mover.js'
import { Drafts } from '../tasks/drafts.js'
import { TaskTable } from '../tasks/task-table.js'

/** Tasks, their deals and bids, and what moves them. */
export interface Market {
  readonly tasks: TaskTable
  readonly drafts: Drafts
  readonly deals: DealTable
  readonly bids: BidTable
  readonly mails: MailTable
  readonly mailer: Mailer
  readonly mover: Mover
  stop(): Promise<void>
}

export interface MarketParts {
  /** Has `taskSchema`. */
  readonly db: Database
  readonly writer: Writer
  readonly network: Network
  readonly miners: Miners
  /** Unix seconds. */
  readonly seconds: () => number
  readonly log: ServicesLog
}

/**
 * Opens the market: removes what interrupted requests left, and begins to move tasks and to send mails.
 * @param folder for the outbox of mails
 */
export async function openMarket(parts: MarketParts, folder: string, mail: MailOptions): Promise<Market> {
  const { db, writer, log } = parts
  const tasks = new TaskTable(db)
  const drafts = new Drafts(tasks, writer)
  await drafts.removeAll()
  const deals = new DealTable(db)
  const bids = new BidTable(db)
  const mails = new MailTable(db)
  const mailer = new Mailer(mails, writer, deliveryOf(mail, join(folder, 'outbox')), log)
  const mover = new Mover({ ...parts, tasks, deals, bids, mails, onMail: () => void mailer.kick() })
  mover.start()
  mailer.start()
  const stop = async (): Promise<void> => {
    await mover.stop()
    await mailer.stop()
  }
  return { tasks, drafts, deals, bids, mails, mailer, mover, stop }
}
