import { sendJson } from '../lib/api.js'
import { html } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Answer } from '../parts/answer.js'
import { Copied } from '../parts/copy.js'
import { Empty } from '../parts/empty.js'
import { Known } from '../parts/known.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Middle } from '../parts/name.js'
import { Folded, Page } from '../parts/page.js'
import { Filters, PageLinks, usePages, Words } from '../parts/pages.js'
import { Table } from '../parts/table.js'
import { Tabs } from '../parts/tabs.js'
import { Time } from '../parts/time.js'
import { GetCoins, inCoin, SaveCsv, TABS, tokenOf, Wallet, withWallet } from './wallet.js'

/** The payments of the wallet as which the key pair acts. */
export function Payments({ query }) {
  const file = query.get('file') || undefined
  const bills = usePages({ path: '/-/pay/v1/billing', query: { 'max-items': 100, 'file-name': file } }, 'Records')
  const client = session.value
  const wallet = useLoaded((signal) => sendJson(client, { path: '/-/pay/v1/wallet', signal }), [client])
  const reload = () => {
    bills.reload()
    wallet.reload()
  }
  const hasCoins = wallet.value?.Kept && tokenOf(wallet.value)?.Balance !== '0'
  const actions = html`${hasCoins && html`<${GetCoins} done=${reload} />`}<button type="button" onClick=${reload}>Refresh</button>${bills.value && html`<${SaveCsv} name="billing.csv" />`}`
  return html`<${Page} title="Payments" actions=${actions}>
    <${Tabs} label="Payments" links=${TABS} />
    <${Wallet} of=${wallet} reload=${reload} />
    ${withWallet(
      wallet,
      bills,
      ({ rows, next }) => html`<h2>Payments</h2>
        <${Filters} query=${query} to=${['payments']}><${Words} label="File contains" name="file" value=${file ?? ''} /><//>
        <${Table} caption="Payments" rows=${rows} keyOf=${({ PayId }) => PayId} columns=${columns(tokenOf(wallet.value))} empty=${file ? 'There is no such payment.' : html`<${NoPayments} />`} />
        <${PageLinks} next=${next} />`,
      true,
    )}
    <${Service} />
  <//>`
}

function NoPayments() {
  return html`<${Empty} title="This wallet has paid nothing yet." actions=${html`<a class="button" href="#/payments/uploads">Uploads that wait for a payment</a>`}>
    A payment is for an upload to IPFS: open an object, choose Upload to IPFS, and pay it then.
  <//>`
}

const columns = (token) => [
  {
    name: 'File',
    rest: true,
    by: ({ FileName }) => FileName,
    cell: ({ FileName }) => html`<${Middle} text=${FileName ?? ''} />`,
  },
  { name: 'State', by: stateOf, cell: (bill) => html`<${Known} kind="payment" of=${stateOf(bill)} />` },
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
  { name: 'Paid at', by: ({ PayTime }) => PayTime ?? '', cell: ({ PayTime }) => html`<${Time} of=${PayTime} />` },
  {
    name: 'Deadline',
    by: ({ DeadlineTime }) => DeadlineTime ?? '',
    cell: ({ DeadlineTime }) => html`<${Time} of=${DeadlineTime} />`,
  },
  { name: 'Transaction', cell: ({ PayTxHash }) => html`<${Copied} text=${PayTxHash} what="the transaction" />` },
]

/** Services state no refund: what was not unlocked by the deadline goes back. */
function stateOf({ UnlockAmount, Deadline }) {
  if (UnlockAmount) return 'Complete'
  return Deadline > 0 && Deadline * 1000 < Date.now() ? 'Goes back' : 'Locked'
}

/** What the payment service says of itself. */
function Service() {
  return html`<${Folded} title="The payment service"><${ServiceFacts} /><//>`
}

function ServiceFacts() {
  const client = session.value
  const facts = useLoaded((signal) => sendJson(client, { path: '/-/pay/v1/system-config', signal }), [client])
  return html`<${Loaded} of=${facts} show=${(value) => html`<${Answer} value=${value} title="Payment service" />`} />`
}
