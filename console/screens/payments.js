import { send, sendJson } from '../lib/api.js'
import { formatBytes, formatTime, formatUnits } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Answer } from '../parts/answer.js'
import { Copied } from '../parts/copy.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notifyError } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { Filters, PageLinks, usePages, Words } from '../parts/pages.js'
import { saveText } from '../parts/save.js'
import { State } from '../parts/state.js'
import { Facts, Table } from '../parts/table.js'
import { Tabs } from '../parts/tabs.js'

const TABS = [
  { href: '#/payments', text: 'Payments' },
  { href: '#/payments/uploads', text: 'Uploads that are paid for' },
]

/** The payments of the wallet as which the key pair acts. */
export function Payments({ query }) {
  const bills = usePages({ path: '/-/pay/v1/billing', query: askedOf(query) }, 'Records')
  const client = session.value
  const wallet = useLoaded((signal) => sendJson(client, { path: '/-/pay/v1/wallet', signal }), [client])
  const both = { ...bills, reload: () => [bills, wallet].map(({ reload }) => reload()) }
  return html`<${Page} title="Payments">
    <${Tabs} label="Payments" links=${TABS} />
    <${WalletFacts} of=${wallet} />
    <h2>Payments</h2>
    <${ByFile} query=${query} to=${['payments']} />
    <${Buttons} list=${both} csv="billing.csv" />
    <${Loaded}
      of=${bills}
      show=${({
        rows,
        next,
      }) => html`<${Table} caption="Payments" rows=${rows} keyOf=${({ PayId }) => PayId} columns=${billColumns(tokenOf(wallet.value))} empty="This wallet has paid nothing yet." />
        <${PageLinks} next=${next} />`}
    />
    <${Service} />
  <//>`
}

/** Uploads of the wallet, with what became of them. */
export function PaidUploads({ query }) {
  const uploads = usePages({ path: '/-/pay/v1/uploads', query: askedOf(query) }, 'Uploads')
  return html`<${Page} title="Uploads that are paid for">
    <${Tabs} label="Payments" links=${TABS} />
    <${ByFile} query=${query} to=${['payments', 'uploads']} />
    <${Buttons} list=${uploads} csv="uploads.csv" />
    <${Loaded}
      of=${uploads}
      show=${({
        rows,
        next,
      }) => html`<${Table} caption="Uploads" rows=${rows} keyOf=${({ SourceFileUploadId }) => SourceFileUploadId} columns=${uploadColumns} empty="This wallet has no upload." />
        <${PageLinks} next=${next} />`}
    />
  <//>`
}

function askedOf(query) {
  return { 'max-items': 100, 'file-name': query.get('file') || undefined }
}

function ByFile({ query, to }) {
  return html`<${Filters} query=${query} to=${to}><${Words} label="File contains" name="file" value=${query.get('file') ?? ''} /><//>`
}

function Buttons({ list, csv }) {
  const [saving, setSaving] = useState(false)
  const save = async () => {
    setSaving(true)
    try {
      const answer = await send(session.value, { path: `/-/pay/v1/${csv}` })
      saveText(csv, await answer.text())
    } catch (error) {
      notifyError(error)
    }
    setSaving(false)
  }
  return html`<div class="buttons">
    <button type="button" onClick=${list.reload}>Refresh</button>
    <button type="button" disabled=${saving} onClick=${save}>Save all as CSV</button>
    ${['WalletNotLinked', 'UpstreamAuthFailed'].includes(list.error?.code) && html`<a href=${linkTo(['calls', 'pay_CreateWalletNonce_POST'])}>Sign a wallet in</a>`}
  </div>`
}

/** A payment in another coin than the present one has decimals that are not known here. */
const inCoin = (digits, coin, token) =>
  coin === token?.Name ? formatUnits(digits, token?.Decimals) : digits && `${digits} smallest units`

const billColumns = (token) => [
  { name: 'File', by: ({ FileName }) => FileName, cell: ({ FileName }) => html`<${Name} text=${FileName} />` },
  {
    name: 'Paid',
    by: ({ PayAmount }) => Number(PayAmount),
    number: true,
    cell: ({ PayAmount, TokenName }) => inCoin(PayAmount, TokenName, token),
  },
  {
    name: 'To providers',
    number: true,
    cell: ({ UnlockAmount, TokenName }) => inCoin(UnlockAmount, TokenName, token),
  },
  { name: 'State', by: stateOf, cell: (bill) => html`<${State} of=${stateOf(bill)} />` },
  {
    name: 'Coin',
    by: ({ TokenName }) => TokenName ?? '',
    cell: ({ TokenName }) => html`<${Name} text=${TokenName} />`,
  },
  { name: 'Paid at', by: ({ PayTime }) => PayTime ?? '', cell: ({ PayTime }) => formatTime(PayTime) },
  {
    name: 'Deadline',
    by: ({ DeadlineTime }) => DeadlineTime ?? '',
    cell: ({ DeadlineTime }) => formatTime(DeadlineTime),
  },
  { name: 'Transaction', cell: ({ PayTxHash }) => html`<${Copied} text=${PayTxHash} what="the transaction" />` },
]

/** Services state no refund: what was not unlocked by the deadline goes back. */
function stateOf({ UnlockAmount, Deadline }) {
  if (UnlockAmount) return 'Complete'
  return Deadline > 0 && Deadline * 1000 < Date.now() ? 'Goes back' : 'Locked'
}

const uploadColumns = [
  { name: 'File', by: ({ FileName }) => FileName, cell: ({ FileName }) => html`<${Name} text=${FileName} />` },
  { name: 'Size', by: ({ FileSize }) => FileSize, number: true, cell: ({ FileSize }) => formatBytes(FileSize) },
  { name: 'State', by: ({ Status }) => Status, cell: ({ Status }) => html`<${State} of=${Status} />` },
  { name: 'Days', by: ({ DurationDays }) => DurationDays, number: true, cell: ({ DurationDays }) => DurationDays },
  { name: 'Deals', number: true, cell: ({ OfflineDeals = [] }) => OfflineDeals.length },
  { name: 'Content', cell: ({ PayloadCid }) => html`<${Copied} text=${PayloadCid} what="the CID" />` },
]

/** What the payment service says of itself. */
function Service() {
  const client = session.value
  const facts = useLoaded((signal) => sendJson(client, { path: '/-/pay/v1/system-config', signal }), [client])
  return html`<details>
    <summary>The payment service</summary>
    <${Loaded} of=${facts} show=${(value) => html`<${Answer} value=${value} title="Payment service" />`} />
  </details>`
}

/** What the wallet of the key pair has and has locked, and what the server may spend today. */
function WalletFacts({ of }) {
  return html`<h2>Wallet</h2>
    <${Loaded} of=${of} show=${(value) => html`<${Known} value=${value} />`} />`
}

/** The token in which payments are; undefined where it is not known. */
function tokenOf(value) {
  return value?.Wallet?.Coins.find(({ Kind }) => Kind === 'token')
}

function Known({ value }) {
  const { WalletAddress, Wallet: wallet, SpentToday, DailyCap, LeftToday } = value
  const token = tokenOf(value)
  const sum = (digits) => digits && token && html`${formatUnits(digits, token.Decimals)} <${Name} text=${token.Name} />`
  return html`<${Facts}
      facts=${[
        ['Address', WalletAddress && html`<${Copied} text=${WalletAddress} what="the address" />`],
        ['Network', wallet && html`<${Name} text=${wallet.NetworkName} />`],
        ['Locked for uploads', sum(wallet?.Locked)],
        ['Paid to providers', sum(wallet?.Unlocked)],
        ['Came back', sum(wallet?.Refunded)],
        ['Spent today, all', SpentToday && `${SpentToday} fil`],
        ['Cap of the day', SpentToday && (DailyCap ? `${DailyCap} fil` : 'none')],
        ['Left of it', LeftToday && `${LeftToday} fil`],
      ]}
    />
    ${
      wallet
        ? html`<${Table} caption="Coins of the wallet" rows=${wallet.Coins} keyOf=${({ Kind, Address }) => `${Kind} ${Address}`} columns=${coinColumns} />`
        : html`<p class="quiet">${WalletAddress ? 'The payment service does not tell what a wallet has: ask the wallet itself.' : 'The key pair acts as no wallet.'}</p>`
    }`
}

const coinColumns = [
  { name: 'Coin', cell: ({ Name: name, Kind }) => html`<${Name} text=${name || Kind} />` },
  { name: 'Kind', cell: ({ Kind }) => html`<${Name} text=${Kind} />` },
  {
    name: 'Balance',
    number: true,
    cell: ({ Balance, Decimals }) => (Balance === '' ? 'not known' : formatUnits(Balance, Decimals)),
  },
  { name: 'Contract', cell: ({ Address }) => Address && html`<${Copied} text=${Address} what="the contract" />` },
]
