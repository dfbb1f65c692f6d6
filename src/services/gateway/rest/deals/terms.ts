import type { DealTerms } from '../../../network/network.js'
import { GatewayError } from '../../errors.js'
import type { TextMembers } from './text-members.js'

const MINER = /^[\x21-\x7e]{1,64}$/
/** Amount in fil with up to 18 decimals, the precision of an attofil. */
const PRICE = /^\d{1,12}(\.\d{1,18})?$/
const DURATION = /^\d{1,9}$/

/** Reads the terms from the body of a request. Throws GatewayError InvalidDeal, whose message says what to send. */
export function readTerms(members: TextMembers, fastRetrieval = inEitherSpelling(members)): DealTerms {
  const minerId = members.get('MinerId')
  if (!MINER.test(minerId)) throw invalid('MinerId must name the storage provider, as in "t03354".')
  const price = members.get('Price')
  if (!PRICE.test(price)) {
    throw invalid(
      'Price must be a decimal number of fil per epoch, with up to 18 digits behind the point, as in "0.000005".',
    )
  }
  const duration = Number(DURATION.test(members.get('Duration')) ? members.get('Duration') : 0)
  if (duration === 0) {
    throw invalid('Duration must be a whole number of epochs above 0, as in "518400": there are 2880 a day.')
  }
  return {
    minerId,
    price,
    duration,
    verifiedDeal: readFlag('VerifiedDeal', members.get('VerifiedDeal'), false),
    fastRetrieval: readFlag('FastRetrieval', fastRetrieval, true),
  }
}

/** As public gateways do: checks nothing and knows one spelling. Invalid terms fail when the deal is sent. */
export function readTermsUnchecked(members: TextMembers): DealTerms {
  const flags = ['VerifiedDeal', 'FastRetrieval'].map((name) => members.get(name))
  if (!flags.every((flag) => flag === 'true' || flag === 'false')) throw sendingFailed()
  try {
    return readTerms(members, members.get('FastRetrieval'))
  } catch {
    throw sendingFailed()
  }
}

/** The interface documents both spellings. */
function inEitherSpelling(members: TextMembers): string {
  const [right, wrong] = [members.get('FastRetrieval'), members.get('FastRetrival')]
  if (right !== '' && wrong !== '' && right !== wrong) {
    throw invalid('FastRetrieval and FastRetrival contradict each other: send one of them.')
  }
  return right === '' ? wrong : right
}

/** @param absent default; Lotus makes deals that are not verified and can be retrieved fast */
function readFlag(name: string, text: string, absent: boolean): boolean {
  if (text === '') return absent
  const flag = text.toLowerCase()
  if (flag !== 'true' && flag !== 'false') throw invalid(`${name} must be "true" or "false".`)
  return flag === 'true'
}

function sendingFailed(): GatewayError {
  return new GatewayError('DealFailed', { value: 'Sending deal failed during lotus sending deal' })
}

function invalid(value: string): GatewayError {
  return new GatewayError('InvalidDeal', { value })
}
