/**
 * The gateway's routes require `Mozilla` in this header; without it a request means something else (MinIO
 * cmd/web-router.go).
 */
export const USER_AGENT = 'Mozilla/5.0 (compatible; dealgate)'
