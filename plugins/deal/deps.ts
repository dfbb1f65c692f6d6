import {
  capOf,
  countByState,
  openFilLedger,
  type SpendCaps,
  type SpendLedger,
  type SpendLedgerOptions,
  spendGauges,
} from 'dealgate/paid'
import type { Context, Jobs, PluginGauge, PluginHost, StoredObject } from 'dealgate/plugin'
import { LocalCopies } from './archive/local-copies.js'
import { configurationOf } from './configuration.js'
import { BudgetWaits } from './jobs/budget-waits.js'
import { TaskRecords } from './offline/task-records.js'
import { type DealOptions, statedOf } from './options.js'
import { ScheduleRecords } from './periodic/schedule-records.js'
import { Attempts } from './records/attempts.js'
import { DealRecords } from './records/deal-records.js'
import { DeepMarks } from './records/deep-marks.js'
import { ObjectEvents } from './records/object-events.js'
import { payingAccount } from './subject.js'
import { resolveTerms, type StatedTogether, statedBy, TERMS_METADATA, type TermSources } from './terms/resolve-terms.js'
import type { DealTerms } from './terms/terms.js'

interface Stated extends Pick<TermSources, 'request' | 'storageClass'> {
  /** The object of the deal, or the object that is about to be stored. */
  readonly object?: Pick<StoredObject, 'metadata' | 'authorized'> | undefined
}

/** The caller pays, or the server's own account when there is no caller. */
type Payer = Pick<Context, 'settings' | 'caller'>

export interface AgreedTerms {
  readonly terms: DealTerms
  /** Absent when the price must be near what the provider asks. */
  readonly priceConfirmed?: true
}

export class DealDeps {
  readonly options: DealOptions
  readonly host: PluginHost
  readonly spending: SpendLedger
  readonly deals: DealRecords
  readonly attempts: Attempts
  readonly copies: LocalCopies
  readonly waits: BudgetWaits
  readonly schedules: ScheduleRecords
  readonly tasks: TaskRecords
  readonly marks: DeepMarks
  readonly events: ObjectEvents

  /** @param host need not have started yet */
  constructor(options: DealOptions, host: PluginHost) {
    this.options = options
    this.host = host
    this.spending = openSpending(host)
    this.deals = new DealRecords(host.state)
    this.attempts = new Attempts(host.state)
    this.copies = new LocalCopies(host.state)
    this.waits = new BudgetWaits(host)
    this.schedules = new ScheduleRecords(host.state)
    this.tasks = new TaskRecords(host.state)
    this.marks = new DeepMarks(host.state)
    this.events = new ObjectEvents(host)
  }

  get jobs(): Jobs {
    return this.host.own.jobs
  }

  /** Resolves the terms for a deal in this bucket. Throws DealTermsRequired, DealTermsInvalid. */
  async termsFor(context: Payer, bucket: string, stated: Stated): Promise<AgreedTerms> {
    const sources = await this.#sources(context, bucket, stated)
    return { terms: resolveTerms(sources), ...(statedBy(sources).priceConfirmed && { priceConfirmed: true }) }
  }

  /** The terms as far as they are stated, not parsed. Throws DealTermsInvalid. */
  async statedFor(context: Payer, bucket: string, stated: Stated): Promise<StatedTogether> {
    return statedBy(await this.#sources(context, bucket, stated))
  }

  async #sources(context: Payer, bucket: string, { object, ...stated }: Stated): Promise<TermSources> {
    const configuration = await configurationOf(context, bucket)
    return {
      ...stated,
      metadata: object?.metadata,
      metadataAuthorized: object?.authorized?.[TERMS_METADATA]?.account === payingAccount(context.caller),
      configuration,
      defaults: statedOf(this.options.terms),
    }
  }

  /** Daily spending caps: of all deals, and of deals of this bucket. */
  async capsFor(context: Pick<Context, 'settings'>, bucket: string): Promise<SpendCaps> {
    const configuration = await configurationOf(context, bucket)
    return { all: capOf(this.options.maxSpendPerDay), bucket: capOf(configuration?.MaxSpendPerDay) }
  }
}

/** Ledger of what deals cost per day, attofil. Throws SpendCapReached for a deal that would exceed a cap. */
export function openSpending(host: Pick<SpendLedgerOptions, 'state' | 'now'>): SpendLedger {
  return openFilLedger(host, { cost: 'The deal would cost', all: 'all deals together' })
}

/** Deals by state, and what they cost today. */
export function dealGauges(deps: DealDeps): readonly PluginGauge[] {
  const { maxSpendPerDay } = deps.options
  return [
    {
      name: 'deals',
      help: 'Deals that are not closed, by the state that the network last reported.',
      read: () => countByState(deps.deals.open(), ({ live }) => live?.state ?? 'Unknown'),
    },
    {
      name: 'lock_renewals',
      help: 'Deals that end before the lock of the version whose only bytes they have, by whether their renewal is due or has failed.',
      read: () => lockRenewals(deps),
    },
    ...spendGauges(deps.spending, maxSpendPerDay),
  ]
}

async function lockRenewals({ deals }: DealDeps): ReturnType<PluginGauge['read']> {
  const counts = { Due: 0, Failed: 0 }
  for await (const { lock } of deals.open()) if (lock) counts[lock.failed === undefined ? 'Due' : 'Failed']++
  return Object.entries(counts).map(([state, value]) => ({ labels: { state }, value }))
}
