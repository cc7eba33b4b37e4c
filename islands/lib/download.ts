// A file that the server makes, fetched with the page's own proof of who asks, and handed to the browser.
// Refuses to hand over a refusal as a file: it is thrown as every other failure.
import { ApiFailure, fetchChecked } from "./api.ts";

/** The name is the server's, without it `fallback`. */
export async function downloadFile(path: string, fallback: string): Promise<void> {
  const response = await fetchChecked(path);
  // Refusals of the console answer 200 as well.
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const disposition = response.headers.get("content-disposition");
  if (isJson && disposition === null) {
    const { code = "bad_answer", message = "" } = (await response.json()) as {
      code?: string;
      message?: string;
    };
    throw new ApiFailure(code, response.status, message);
  }
  const name = /filename="([^"]+)"/.exec(disposition ?? "")?.[1] ?? fallback;
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The download has been taken over when the click returns; some browsers read the address a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
