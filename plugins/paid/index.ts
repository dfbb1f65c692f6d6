/**
 * The package's entry `dealgate/paid`: what plugins share that call another service and spend money with it: the
 * ledger of what was spent, requests whose outcome is not known, tolerant reading of answers, and sign-in.
 */
export {
  type AnswerPart,
  AnswerReader,
  type AnswerReaderOptions,
  answerParts,
  answerShape,
  badResponse,
  type Envelope,
  lenient,
  listed,
  member,
  membersOf,
  quoted,
} from './answers.js'
export { countByState, spendGauges } from './gauges.js'
/** What the plugin task offers the others by `host.offered`. */
export type { ListedProvider } from './offers.js'
export { OptionalService, PaidService, type PaidServiceOptions, serviceOptions } from './paid-service.js'
export { type ProviderDocument, priceStatistics, providerDocument, providerShape } from './providers.js'
export { plainWarning, publicNetwork, publicWarning, warningHeaders } from './public-network.js'
export { type Found, SentRequests, type SentRequestsOptions } from './sent-requests.js'
export {
  type Actor,
  Attempts,
  accountOrKeyHash,
  actorOf,
  IdentitySecrets,
  type IdentitySecretsOptions,
  JobTokens,
  requireToken,
  secretKeyHash,
  signedIdentity,
  TokenRefused,
  type TokenTimes,
  timesOfToken,
} from './sign-in.js'
export {
  type CapToday,
  capOf,
  type ExceededCap,
  type Expense,
  filPerDay,
  type ListedExpense,
  openFilLedger,
  type SpendCaps,
  SpendLedger,
  type SpendLedgerOptions,
} from './spend-ledger.js'
