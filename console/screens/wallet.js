import { formatUnits } from '../lib/format.js'
import { html } from '../lib/html.js'
import { Copied } from '../parts/copy.js'
import { Loaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { Facts, Table } from '../parts/table.js'

/** What the wallet of the key pair has and has locked, and what the server may spend today. */
export function WalletFacts({ of }) {
  return html`<h2>Wallet</h2>
    <${Loaded} of=${of} show=${(value) => html`<${Known} value=${value} />`} />`
}

/** The token in which payments are; undefined where it is not known. */
export function tokenOf(value) {
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
        ? html`<${Table} caption="Coins of the wallet" rows=${wallet.Coins} keyOf=${({ Kind, Address }) => `${Kind} ${Address}`} columns=${columns} />`
        : html`<p class="quiet">${WalletAddress ? 'The payment service does not tell what a wallet has: ask the wallet itself.' : 'The key pair acts as no wallet.'}</p>`
    }`
}

const columns = [
  { name: 'Coin', cell: ({ Name: name, Kind }) => html`<${Name} text=${name || Kind} />` },
  { name: 'Kind', cell: ({ Kind }) => html`<${Name} text=${Kind} />` },
  {
    name: 'Balance',
    number: true,
    cell: ({ Balance, Decimals }) => (Balance === '' ? 'not known' : formatUnits(Balance, Decimals)),
  },
  { name: 'Contract', cell: ({ Address }) => Address && html`<${Copied} text=${Address} what="the contract" />` },
]
