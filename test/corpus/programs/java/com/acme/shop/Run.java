// Runs every cause once and prints name, message and stack trace of each exception between marks.
package com.acme.shop;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.UUID;

public class Run {
  interface Work {
    void run() throws Exception;
  }

  static void attempt(String label, Work work) throws Exception {
    Throwable thrown = null;
    try {
      if ("queue".equals(System.getenv("CORPUS_WAY"))) inQueue(work);
      else work.run();
    } catch (Throwable error) {
      thrown = error;
    }
    StringWriter text = new StringWriter();
    if (thrown != null) thrown.printStackTrace(new PrintWriter(text, true));
    System.out.println("\u0001" + label);
    System.out.println("\u0002" + (thrown == null ? "" : thrown.getClass().getName()));
    System.out.println("\u0002" + (thrown == null ? "" : thrown.getMessage()));
    System.out.println("\u0002" + text);
  }

  static void inQueue(Work work) throws Throwable {
    Throwable[] thrown = new Throwable[1];
    Thread thread = new Thread(() -> {
      try {
        work.run();
      } catch (Throwable error) {
        thrown[0] = error;
      }
    }, "queue-1");
    thread.start();
    thread.join();
    if (thrown[0] != null) throw thrown[0];
  }

  public static void main(String[] args) throws Exception {
    Random dice = new Random(Long.parseLong(System.getenv("CORPUS_SEED")) * 7919);
    String folder = System.getenv("CORPUS_FOLDER");
    String id = new UUID(dice.nextLong(), dice.nextLong()).toString();
    String word = "falcon" + dice.nextInt(999);
    int number = 1000 + dice.nextInt(99999);
    int port;
    try (ServerSocket server = new ServerSocket(0)) {
      port = server.getLocalPort();
    }
    Billing billing = new Billing();
    List<String> names = List.of(word, id);
    attempt("java: account missing on lookup", () -> billing.find(id));
    attempt("java: account missing on close", () -> billing.close(id));
    attempt("java: account without owner", () -> billing.ownerLength(new Billing.Account(id, null, null)));
    attempt("java: account without parent", () -> billing.parentOwner(new Billing.Account(id, word, null)));
    attempt("java: quantity not a number", () -> billing.quantity(word));
    attempt("java: discount not a number", () -> billing.discount(word));
    attempt("java: amount not a number", () -> billing.amount(word));
    attempt("java: rate without end", () -> billing.rate(BigDecimal.ONE, new BigDecimal(3)));
    attempt("java: due date in another form", () -> billing.due("on " + number));
    attempt("java: no days", () -> billing.perDay(number, 0));
    attempt("java: line past the end", () -> billing.line(Arrays.asList(word), number));
    attempt("java: text as number", () -> billing.cast(word));
    attempt("java: no such name", () -> billing.first(names));
    attempt("java: bill missing", () -> billing.read(folder, word));
    attempt("java: draft missing", () -> billing.readUnchecked(folder, word));
    attempt("java: address exists", () -> billing.insert(word + "@example.com"));
    attempt("java: row locked", () -> billing.update(id));
    attempt("java: save of address that exists", () -> billing.save(id, word + "@example.com"));
    attempt("java: refresh of locked row", () -> billing.refresh(id));
    attempt("java: connection refused", () -> billing.connect(port));
    attempt("java: reference not a UUID", () -> billing.reference(word));
    attempt("java: transfer negative", () -> billing.transfer(id, -number));
    attempt("java: transfer above the limit", () -> billing.transfer(id, number));
    attempt("java: fixed list changed", () -> billing.remove(names, word));
    attempt("java: total with a hole", () -> billing.total(Arrays.asList(number, null)));
    attempt("java: endless depth", () -> billing.depth(0));
  }
}
