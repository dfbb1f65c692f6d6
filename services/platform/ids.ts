const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** True for the form of an actor's id or a libp2p peer id; whether there is such a provider is another question. */
export function isMinerId(text: string): boolean {
  return /^[a-zA-Z0-9]{2,128}$/.test(text)
}
