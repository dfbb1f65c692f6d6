// What the states of deals, tasks, bids, payments and jobs mean, in plain words: their own words are those of Filecoin, of
// the task platform, of the payment service and of this server. test/console/words.test.ts finds states without words.

const deal = {
  StorageDealUnknown: ['Not known', 'The network tells no state of this deal.'],
  StorageDealReserveClientFunds: ['Reserving the price', 'The price is set aside in the wallet of the gateway.'],
  StorageDealClientFunding: ['Reserving the price', 'The price is set aside in the wallet of the gateway.'],
  StorageDealReserveProviderFunds: [
    'Provider sets aside collateral',
    'The provider sets aside what it pledges for the deal.',
  ],
  StorageDealProviderFunding: [
    'Provider sets aside collateral',
    'The provider sets aside what it pledges for the deal.',
  ],
  StorageDealFundsReserved: ['Price reserved', 'The price is set aside, and the proposal goes to the provider next.'],
  StorageDealValidating: ['Being checked', 'The provider checks the terms of the deal.'],
  StorageDealAcceptWait: ['Waiting for acceptance', 'The provider decides whether it takes the deal.'],
  StorageDealCheckForAcceptance: [
    'Waiting for acceptance',
    'The provider has the proposal, and decides whether it takes the deal.',
  ],
  StorageDealProposalAccepted: ['Accepted', 'The provider takes the deal, and waits for the data.'],
  StorageDealWaitingForData: ['Waiting for the data', 'The provider waits until it gets the packed data.'],
  StorageDealWaiting: ['Waiting', 'The deal waits for its next step.'],
  StorageDealCheck: ['Being checked', 'The network checks the deal.'],
  StorageDealTransferQueued: ['Waiting for the transfer', 'The data goes to the provider as soon as there is room.'],
  StorageDealStartDataTransfer: ['Sending the data', 'The data is on its way to the provider.'],
  StorageDealTransferring: ['Sending the data', 'The data is on its way to the provider.'],
  StorageDealClientTransferRestart: ['Sending the data again', 'The transfer was interrupted, and goes on.'],
  StorageDealProviderTransferAwaitRestart: ['Sending the data again', 'The transfer was interrupted, and goes on.'],
  StorageDealVerifyData: ['Data being checked', 'The provider compares the data with what was agreed.'],
  StorageDealStaged: ['Data received', 'The provider has the data, and has not sealed it yet.'],
  StorageDealPublish: ['Being published', 'The deal is written to the chain.'],
  StorageDealPublishing: ['Being published', 'The deal is written to the chain.'],
  StorageDealAwaitingPreCommit: [
    'Waiting for sealing',
    'The deal is on the chain, and the provider has not begun to seal the data.',
  ],
  StorageDealSealing: [
    'Sealing',
    'The provider packs the data so that it can prove that it keeps it. That can take hours.',
  ],
  StorageDealFinalizing: ['Proof being written', 'The data is sealed, and the proof is being written to the chain.'],
  StorageDealActive: ['Active', 'The provider keeps the data, and proves it every day.'],
  StorageDealExpired: [
    'Expired',
    'The time that was paid for is over: the provider need not keep the data any longer.',
  ],
  StorageDealSlashed: [
    'Failed: lost by the provider',
    'The provider did not prove that it keeps the data, and has lost its pledge. Make another deal.',
  ],
  StorageDealRejecting: ['Being rejected', 'The provider refuses the deal. Nothing was paid.'],
  StorageDealProposalRejected: ['Rejected', 'The provider has refused the deal. Nothing was paid: choose another one.'],
  StorageDealProposalNotFound: ['Not found', 'The provider knows no such deal.'],
  StorageDealFailing: ['Failing', 'The deal could not be made, and is being ended.'],
  StorageDealError: ['Failed', 'The deal could not be made, or has ended too early. Make another one.'],
  Recorded: ['Made, state not reported', 'The deal was made by this server. The gateway does not tell its state.'],
}

const task = {
  Created: ['Looking for a provider', 'The task is open for bids.'],
  Assigned: ['Provider found', 'A provider has the task, and fetches its files.'],
  DealSent: ['Deals proposed', 'The network knows all deals of the task, and the provider prepares them.'],
  ActionRequired: [
    'No provider: failed',
    'The time for bids is over without a provider. Create the task again, with a higher price.',
  ],
  ProgressWithFailure: ['Partly failed', 'The provider has failed with some of the deals.'],
  Completed: ['Complete', 'All deals of the task are active.'],
  Recorded: ['Posted, state not reported', 'The task was posted by this server. The platform does not tell its state.'],
}

/** A deal of a task, as the program of its provider reports it. */
const taskDeal = {
  Created: ['Not begun', 'The provider has not fetched the file yet.'],
  Waiting: ['Waiting', 'The provider fetches the file later.'],
  Downloading: ['Fetching the file', 'The provider fetches the file.'],
  Downloaded: ['File fetched', 'The provider has the file.'],
  DownloadFailed: ['Failed: file not fetched', 'The provider could not fetch the file.'],
  ReadyForImport: ['Ready to be imported', 'The provider has the file, and has not begun to store it.'],
  FileImporting: ['Being imported', 'The provider stores the file.'],
  FileImported: ['Imported', 'The provider has stored the file, and seals it.'],
  ImportFailed: ['Failed: not stored', 'The provider could not store the file.'],
  DealActive: ['Active', 'The provider keeps the file, and proves it every day.'],
}

const bid = {
  New: ['Open', 'The bid can be accepted.'],
  Won: ['Won', 'The provider has got the task.'],
  Lost: ['Lost', 'Another provider has got the task.'],
}

/** An upload to IPFS at the payment service. */
const upload = {
  Pending: ['Not paid yet', 'The content is stored for some days, and waits for the payment of the wallet.'],
  Free: ['Free', 'The upload is within the free allowance: nothing is to be paid.'],
  Paid: ['Paid', 'The payment is locked, and the service makes deals for the content.'],
  Processing: ['Deals being made', 'The payment is locked, and the service makes deals for the content.'],
  TaskCreated: ['Deals being made', 'The service has posted a task for the content.'],
  Success: ['Complete', 'A storage provider keeps the content, and was paid.'],
  Unseen: ['Not shown', 'The payment service does not show the upload to this wallet.'],
  Refundable: ['Payment comes back', 'No provider took the content: what was locked goes back to the wallet.'],
  Refunded: ['Failed: payment came back', 'No provider took the content. What was locked is in the wallet again.'],
}

/** What a wallet has locked for an upload. */
const payment = {
  Locked: ['Locked', 'Set aside for the storage providers until they keep the content.'],
  Complete: ['Complete', 'The storage provider was paid.'],
  'Goes back': ['Comes back', 'The deadline is over: what no provider has earned goes back to the wallet.'],
}

const job = {
  New: ['Waiting', 'The job begins soon.'],
  Active: ['Running', 'The job is at work.'],
  Unknown: [
    'Unknown outcome',
    'The answer to its request was lost. The server looks for what came of it, and does not repeat it unseen.',
  ],
  Cancelling: ['Being cancelled', 'The job ends before its next step.'],
  Complete: ['Complete', 'The job has done its work.'],
  Failed: ['Failed', 'The job has ended without its result.'],
  Cancelled: ['Cancelled', 'The job was ended before it was done.'],
  Incomplete: ['Partly failed', 'The backup lacks some objects.'],
  Refused: ['Refused', 'The backup was not begun.'],
}

/** What happened to an object. */
export const events = {
  Stored: 'Stored',
  OfflineDealAwaited: 'Waits for the next offline deal of the bucket',
  DealRequested: 'A deal was requested',
  DealFailed: 'The deal failed',
  DealMade: 'A deal was made',
  DealState: 'The network reported',
  DealVerified: 'The provider delivered the whole object unchanged',
  DealDoubted: 'The provider did not deliver the object',
  DealEnding: 'The deal is about to end',
  DealEnded: 'The deal has ended',
  RenewalFailed: 'The deal could not be renewed',
  DealRetired: 'Newer backups have replaced the deal',
  Evicted: 'The copy on the gateway was evicted: the bytes are only in deals',
  EvictionRefused: 'The gateway kept its copy',
  RestoreRequested: 'A restore was requested',
  RestoreFailed: 'The restore failed',
  RestoreProlonged: 'The restored copy stays longer',
  Restored: 'Restored',
  UploadRequested: 'An upload to IPFS was requested',
  UploadFailed: 'The upload to IPFS failed',
  Uploaded: 'Uploaded to IPFS, and now',
  PaymentLocked: 'The payment was locked',
  UploadDealMade: 'The payment service made a deal',
  UploadDealState: 'The deal of the payment service was reported as',
  PaymentUnlocked: 'The provider was paid',
  PaymentRefunded: 'The payment went back to the wallet',
}

export const words = { deal, task, taskDeal, bid, upload, payment, job }

/**
 * A state in plain words: { name, says }; undefined for one of a service that this table does not know.
 * @param kind a member of `words`
 */
export function wordOf(kind, state) {
  if (!Object.hasOwn(words[kind], state)) return undefined
  const [name, says] = words[kind][state]
  return { name, says }
}

/** A message of the network, with plain names for the states in it. */
export function inPlainWords(message) {
  return message.replace(/\bStorageDeal[A-Za-z]+/g, (state) => wordOf('deal', state)?.name ?? state)
}

/** What people can do about refusals that name calls of the server. A code of `errors`, or undefined. */
export const remedies = {
  WalletNotLinked:
    'This key pair has no wallet at the payment service. The owner of the server has one; another key pair links its own.',
  PlatformIdentityRequired:
    'This key pair is no user of the task platform. The owner of the server is one; another key pair signs in as its own.',
  UpstreamAuthFailed: 'The sign-in at the service has expired, or is refused. Sign in there again.',
  NotImplemented: 'This server was started without the service that this screen is about.',
  UpstreamUnavailable: 'The service behind this server does not answer. It may come back by itself.',
  UpstreamTimeout: 'The service behind this server did not answer in time. It may come back by itself.',
}
