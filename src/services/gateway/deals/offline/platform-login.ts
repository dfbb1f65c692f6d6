/** How the gateway acts at a task platform for its accounts. */
export interface PlatformLogin {
  /** Base URL of the platform, without a slash at the end. */
  readonly url: string
  /**
   * A JWT of the user that an account belongs to; undefined when the platform has no such user.
   * @param user id of the user; undefined for the first account, which acts as the first user
   */
  tokenFor(user: string | undefined): Promise<string | undefined>
}
