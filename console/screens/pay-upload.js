import { sendJson } from '../lib/api.js'
import { formatUnits } from '../lib/format.js'
import { html } from '../lib/html.js'
import { session } from '../lib/session.js'
import { Confirm, Dialog } from '../parts/dialog.js'
import { Command } from '../parts/known.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Facts } from '../parts/table.js'
import { GetCoins, tokenOf } from './wallet.js'

/**
 * The payment of an upload from the wallet that the server keeps, after a confirmation; another wallet pays by itself.
 * @param id number of the upload; @param name of its file; @param done is called when it is paid
 */
export function PayUpload({ id, name, done, onClose }) {
  const client = session.value
  const read = (path) => (signal) => sendJson(client, { path: `/-/pay/v1/${path}`, signal })
  const quote = useLoaded(read(`uploads/${id}/quote`), [client, id])
  const wallet = useLoaded(read('wallet'), [client])
  const action = async (signal) => {
    const json = { Amount: quote.value.Amount }
    await sendJson(client, { path: `/-/pay/v1/uploads/${id}/payment`, json, signal })
    notify('The upload is paid: storage providers get what was locked when they keep it.')
    done()
  }
  const both = {
    ...quote,
    value: quote.value && wallet.value && { quote: quote.value, wallet: wallet.value },
    error: quote.error ?? wallet.error,
  }
  if (!both.value || !quote.value.Kept || quote.value.IsFree) {
    return html`<${Dialog} title="Pay upload" onClose=${onClose}>
      <${Loaded} of=${both} show=${() => html`<${Elsewhere} id=${id} isFree=${quote.value.IsFree} />`} />
      <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
    <//>`
  }
  const token = tokenOf(wallet.value)
  const has = token && BigInt(token.Balance || 0)
  const lacks = has !== undefined && has < BigInt(quote.value.Amount)
  const amount = token ? `${formatUnits(quote.value.Amount, token.Decimals)} ${token.Name}` : quote.value.Amount
  if (lacks) {
    return html`<${Dialog} title="Pay upload" onClose=${onClose}>
      <p>The payment is <strong>${amount}</strong>, and the wallet has ${formatUnits(token.Balance, token.Decimals)}. Coins of this server have no value: take some first.</p>
      <div class="buttons"><${GetCoins} done=${wallet.reload} /><button type="button" onClick=${onClose}>Cancel</button></div>
    <//>`
  }
  return html`<${Confirm} title="Pay upload" submit=${`Pay ${amount}`} action=${action} onClose=${onClose}>
    <p><strong><${Name} text=${name} /></strong> is kept by storage providers for <strong>${amount}</strong>, which is locked until they keep it. What none has earned by the deadline comes back.</p>
    <${Facts} facts=${[['The wallet has', token && `${formatUnits(token.Balance, token.Decimals)} ${token.Name}`]]} />
  <//>`
}

function Elsewhere({ id, isFree }) {
  if (isFree) return html`<p>This upload is free: there is nothing to pay.</p>`
  return html`<p>The server has no key of this wallet: pay with the wallet itself. <${Command} before="For a wallet in a file of the server:" text=${`dealgate wallet pay ${id} --password -`} /></p>`
}
