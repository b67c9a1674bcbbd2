// Billing in Java: what goes wrong with numbers, dates, accounts and files.
package com.acme.shop;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.LocalDate;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;

class Billing {
  static class AccountMissing extends RuntimeException {
    AccountMissing(String id) {
      super("Account " + id + " does not exist");
    }
  }

  static class BillingException extends Exception {
    BillingException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  record Account(String id, String owner, Account parent) {}

  private final Map<String, Account> accounts = new HashMap<>();

  Account find(String id) {
    Account account = accounts.get(id);
    if (account == null) throw new AccountMissing(id);
    return account;
  }

  Account close(String id) {
    if (!accounts.containsKey(id)) throw new AccountMissing(id);
    return accounts.remove(id);
  }

  int ownerLength(Account account) {
    return account.owner().length();
  }

  String parentOwner(Account account) {
    return account.parent().owner();
  }

  int quantity(String text) {
    return Integer.parseInt(text);
  }

  int discount(String text) {
    return Integer.parseInt(text);
  }

  BigDecimal amount(String text) {
    return new BigDecimal(text);
  }

  BigDecimal rate(BigDecimal whole, BigDecimal parts) {
    return whole.divide(parts);
  }

  LocalDate due(String text) {
    return LocalDate.parse(text);
  }

  int perDay(int total, int days) {
    return total / days;
  }

  String line(List<String> lines, int index) {
    return lines.get(index);
  }

  Integer cast(Object value) {
    return (Integer) value;
  }

  String first(List<String> names) {
    return names.stream().filter(name -> name.startsWith("zz")).findFirst().orElseThrow();
  }

  String read(String folder, String name) throws IOException {
    return Files.readString(Path.of(folder, "bills", name + ".json"));
  }

  String readUnchecked(String folder, String name) {
    try {
      return Files.readString(Path.of(folder, "drafts", name + ".json"));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  void insert(String email) throws SQLException {
    throw new SQLException("Duplicate entry '" + email + "' for key 'accounts.email'", "23000", 1062);
  }

  void update(String id) throws SQLException {
    throw new SQLException("Lock wait timeout exceeded; try restarting transaction (" + id + ")", "40001", 1205);
  }

  void save(String id, String email) throws BillingException {
    try {
      insert(email);
    } catch (SQLException error) {
      throw new BillingException("Account " + id + " could not be saved", error);
    }
  }

  void refresh(String id) throws BillingException {
    try {
      update(id);
    } catch (SQLException error) {
      throw new BillingException("Account " + id + " could not be saved", error);
    }
  }

  void connect(int port) throws IOException {
    new Socket("127.0.0.1", port).close();
  }

  UUID reference(String text) {
    return UUID.fromString(text);
  }

  void transfer(String id, int cents) {
    if (cents < 0) throw new IllegalArgumentException("Amount of transfer " + id + " is negative: " + cents);
    if (cents > 100) throw new IllegalArgumentException("Amount of transfer " + id + " is above the limit: " + cents);
  }

  void remove(List<String> fixed, String name) {
    fixed.remove(name);
  }

  void total(List<Integer> cents) {
    Optional.of(cents).map(list -> list.stream().mapToInt(Integer::intValue).sum()).get();
  }

  int depth(int level) {
    return depth(level + 1) + 1;
  }
}
