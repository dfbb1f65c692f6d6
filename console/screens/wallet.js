// The wallet as which the key pair acts: what the screens of payments share.
import { send, sendJson } from '../lib/api.js'
import { formatUnits } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Amount } from '../parts/amount.js'
import { Copied } from '../parts/copy.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Command, Reached } from '../parts/known.js'
import { Name } from '../parts/name.js'
import { notify, notifyError } from '../parts/notices.js'
import { saveText } from '../parts/save.js'
import { Facts } from '../parts/table.js'

export const TABS = [
  { href: '#/payments', text: 'Payments' },
  { href: '#/payments/uploads', text: 'Uploads to IPFS' },
]

/** Coins of the embedded ledger that one click gives. */
const COINS = 100

/** The token in which payments are; undefined where it is not known. */
export function tokenOf(value) {
  return value?.Wallet?.Coins.find(({ Kind }) => Kind === 'token')
}

/** A payment in another coin than the present one has decimals that are not known here. */
export function inCoin(digits, coin, token) {
  if (!digits) return undefined
  const known = coin === token?.Name
  return html`<${Amount} of=${known ? formatUnits(digits, token.Decimals) : digits} unit=${known ? coin : `smallest units of ${coin}`} />`
}

const link = () => html`<${Command} before="Where its key is:" text="dealgate wallet link --password -" />`
const ways = () => ({ WalletNotLinked: link(), UpstreamAuthFailed: link() })

/** A list of the wallet. @param told true: the screen itself says where there is no wallet */
export function withWallet(wallet, list, show, told) {
  // Without the wallet, it is not known how many decimals its coin has.
  if (wallet.value === undefined && wallet.loading)
    return told ? undefined : html`<p class="quiet" role="status">Loading…</p>`
  const none = wallet.value !== undefined && wallet.value.WalletAddress === undefined
  if (told && none && ['WalletNotLinked', 'UpstreamAuthFailed'].includes(list.error?.code)) return undefined
  return html`<${Reached} of=${list} ways=${ways()} show=${show} />`
}

/** What the wallet has and has locked, and what the server may spend today. */
export function Wallet({ of, reload }) {
  return html`<h2>Wallet</h2>
    <${Reached} of=${of} ways=${ways()} show=${(value) => html`<${Held} value=${value} reload=${reload} />`} />`
}

function Held({ value, reload }) {
  const { WalletAddress, Kept: kept, Wallet: wallet, SpentToday, DailyCap, LeftToday } = value
  const token = tokenOf(value)
  const sum = (digits) => token && inCoin(digits, token.Name, token)
  const isEmpty = kept && token?.Balance === '0'
  return html`${
    WalletAddress === undefined &&
    html`<${Empty} title="This key pair has no wallet." actions=${link()}>The owner of the server has one by itself; another key pair links its own.<//>`
  }
    ${
      isEmpty &&
      html`<${Empty} title="The wallet has no coins yet." actions=${html`<${GetCoins} done=${reload} />`}>
        It pays uploads in coins of this server, which have no value.
      <//>`
    }
    <${Facts}
      facts=${[
        ...(wallet?.Coins ?? []).map(({ Name: name, Kind, Balance, Decimals }) => [
          Kind === 'token' ? 'Has' : 'Has for fees',
          Balance === '' ? 'not known' : html`<${Amount} of=${formatUnits(Balance, Decimals)} unit=${name} />`,
        ]),
        ['Locked for uploads', sum(wallet?.Locked)],
        ['Paid to providers', sum(wallet?.Unlocked)],
        ['Came back', sum(wallet?.Refunded)],
        ['Spent today, by the server', SpentToday && html`<${Amount} of=${SpentToday} unit="fil" />`],
        ['Cap of the day', SpentToday && (DailyCap ? `${DailyCap} fil` : 'none')],
        ['Left of it', LeftToday && html`<${Amount} of=${LeftToday} unit="fil" />`],
        ['Address', WalletAddress && html`<${Copied} text=${WalletAddress} what="the address" />`],
        ['Key', WalletAddress && (kept ? 'kept by this server for its owner' : 'with the wallet itself')],
        ['Network', wallet && html`<${Name} text=${wallet.NetworkName} />`],
      ]}
    />
    ${WalletAddress && !wallet && html`<p class="quiet">The payment service does not tell what a wallet has: ask the wallet itself.</p>`}`
}

/** Gives the wallet that the server keeps coins of its ledger. */
export function GetCoins({ done }) {
  const [asks, setAsks] = useState(false)
  const action = async (signal) => {
    const json = { Coins: COINS, Reference: crypto.randomUUID() }
    await sendJson(session.value, { path: '/-/pay/v1/wallet/coins', json, signal })
    notify(`The wallet has got ${COINS} coins.`)
    done()
  }
  return html`<button type="button" onClick=${() => setAsks(true)}>Get ${COINS} test coins…</button>
    ${
      asks &&
      html`<${Confirm} title="Get test coins" submit=${`Get ${COINS} coins`} action=${action} onClose=${() => setAsks(false)}>
        <p>The ledger of this server gives its owner ${COINS} coins. They have no value anywhere else.</p>
      <//>`
    }`
}

/** Saves a list of the wallet as CSV. @param name of the call, and of the file */
export function SaveCsv({ name }) {
  const [saving, setSaving] = useState(false)
  const save = async () => {
    setSaving(true)
    try {
      const answer = await send(session.value, { path: `/-/pay/v1/${name}` })
      saveText(name, await answer.text())
    } catch (error) {
      notifyError(error)
    }
    setSaving(false)
  }
  return html`<button type="button" disabled=${saving} onClick=${save}>Save all as CSV</button>`
}
