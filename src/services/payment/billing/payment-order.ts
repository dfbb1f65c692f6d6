/**
 * What a wallet signs by `personal_sign` to pay for an upload in the embedded ledger.
 * @param amount millionths of a stable coin
 * @param networkName of the service
 */
export function paymentOrderText(wCid: string, amount: bigint, networkName: string): string {
  return `Lock ${amount} millionths of a stable coin for ${wCid} on ${networkName}`
}
