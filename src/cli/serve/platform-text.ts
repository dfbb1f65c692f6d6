import type { PlatformInUse, SignIn } from './gateway.js'

/** The task platform in a start message. */
export interface ShownPlatform {
  readonly url: string
  /** The first user, if this start made it. */
  readonly madeUser: SignIn | undefined
}

/** Makes the first user if there is none. Call it last: what it returns must be printed. */
export async function shownPlatform(platform: PlatformInUse | undefined): Promise<ShownPlatform | undefined> {
  return platform && { url: platform.url, madeUser: await platform.makeFirstUser?.() }
}

/** The members of a start line in JSON that tell the task platform. */
export function platformMembers(platform: ShownPlatform | undefined): Record<string, string> {
  if (platform === undefined) return {}
  const { url, madeUser } = platform
  if (madeUser === undefined) return { platform: url }
  return { platform: url, platformEmail: madeUser.email, platformPassword: madeUser.password }
}

/** The line of a start message for people that tells the storage payment API, with its end. */
export function paymentLine(url: string | undefined): string {
  return url === undefined ? '' : `  payment     ${url}\n`
}

/** The lines of a start message for people, each with its end. */
export function platformLines(platform: ShownPlatform | undefined): string {
  if (platform === undefined) return ''
  const { url, madeUser } = platform
  const address = `  platform    ${url}\n`
  if (madeUser === undefined) return address
  return `${address}  e-mail      ${madeUser.email}\n  password    ${madeUser.password} (shown this once)\n`
}
