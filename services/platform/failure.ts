/** What the platform answers where it refuses a request. */
export const failure = (message: string) => ({ status: 'fail', message })
