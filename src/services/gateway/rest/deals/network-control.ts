import type { NetworkControl } from '../../../network/embedded/control.js'
import type { Fault } from '../../../network/embedded/faults.js'
import { NetworkError } from '../../../network/network.js'
import { GatewayError } from '../../errors.js'
import { dealEndpoint } from './envelope.js'
import { TextMembers } from './text-members.js'

/** Faults by their wire names. */
const FAULTS: Readonly<Record<string, Fault>> = {
  offline: 'offline',
  rejects: 'rejects',
  'loses-data': 'losesData',
  'corrupts-data': 'corruptsData',
  slow: 'slow',
}

/**
 * POST network/control: advances the time of the storage network, or switches a fault of a provider. For tests and
 * demonstrations, and for the first account only.
 */
export const networkControl = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { control, network } = exchange.context
    if (rest !== 'control' || control === undefined) throw new GatewayError('NotFound')
    // The network is that of all accounts.
    if (exchange.account.isIamUser) throw new GatewayError('NotPermitted')
    await act(control, await TextMembers.read(exchange))
    const faults = control.faults().map(({ minerId, fault }) => ({ minerId, fault: nameOf(fault) }))
    return { data: { faults, epoch: network.epoch() }, message: '' }
  },
})

async function act(control: NetworkControl, members: TextMembers): Promise<void> {
  const epochs = members.get('AdvanceEpochs')
  if (epochs !== '') {
    if (!/^[1-9]\d{0,8}$/.test(epochs)) throw invalid('AdvanceEpochs must be a whole number from 1 to 999999999.')
    return control.advance(Number(epochs))
  }
  const name = members.get('Fault')
  const fault = Object.hasOwn(FAULTS, name) ? FAULTS[name] : undefined
  const on = members.get('On')
  if (fault === undefined || (on !== 'true' && on !== 'false')) {
    throw invalid(
      `Send {"AdvanceEpochs": "…"}, or {"MinerId": "…", "Fault": "…", "On": "true" or "false"}; faults are ${Object.keys(FAULTS).join(', ')}.`,
    )
  }
  try {
    await control.setFault(members.get('MinerId'), fault, on === 'true')
  } catch (error) {
    throw error instanceof NetworkError ? invalid(error.message) : error
  }
}

function nameOf(fault: Fault): string | undefined {
  return Object.keys(FAULTS).find((name) => FAULTS[name] === fault)
}

function invalid(value: string): GatewayError {
  return new GatewayError('InvalidBody', { value })
}
